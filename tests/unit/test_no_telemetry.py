"""Nothing leaves the office: OpenVINO's own reporting is off in every process of ours."""

import subprocess
import sys


def test_openvino_finds_no_telemetry() -> None:
    code = (
        "import fleetapp, openvino\n"
        "from openvino.tools.ovc import telemetry_utils\n"
        "print(telemetry_utils.tm.__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "openvino.tools.ovc.telemetry_stub"
