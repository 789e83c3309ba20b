"""From a model file to verified shards on disk."""

import sys

# Importing OpenVINO reports usage to a web analytics service, from a forked process, whenever this
# package can be imported (openvino.tools.ovc falls back to a stub when it cannot). Nothing leaves
# this PC without the user's consent, and a fork of a threaded process may hang with our pipes open.
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
