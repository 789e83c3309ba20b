"""What can go wrong with the history file."""

from __future__ import annotations

from fleetapp.errors import FleetError


class HistoryUnusable(FleetError):
    """The history can be neither read nor begun anew; a chat goes on without being kept."""

    code = "history_unusable"
    http_status = 500
    exit_code = 3
