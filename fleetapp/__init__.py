"""An office's own laptops serving large language models."""

import sys

__version__ = "0.1.0"

# OpenVINO's Python tools report to their maker by default, from a forked process, whenever a graph
# is converted or saved (package openvino-telemetry). Nothing leaves the office, so the package is
# hidden before anything can import OpenVINO; its users then fall back to their own stub.
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
