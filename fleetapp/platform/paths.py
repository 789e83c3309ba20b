"""Where things lie on disk, as one frozen value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs


@dataclass(frozen=True)
class Paths:
    """The folders and files below one state folder; nothing here touches the disk.

    Two agents on one PC have two homes and share nothing but, if set so, the model library.
    """

    home: Path

    @property
    def identity(self) -> Path:
        """Device key and what makes this PC a member."""
        return self.home / "identity"

    @property
    def device_key(self) -> Path:
        """PEM private key of this device, readable by its user only."""
        return self.identity / "device.key"

    @property
    def device_cert(self) -> Path:
        """Self-signed certificate of the device key; shown before a fleet is joined."""
        return self.identity / "device.crt"

    @property
    def fleet(self) -> Path:
        """Exists exactly while this PC belongs to a fleet."""
        return self.identity / "fleet"

    @property
    def hub(self) -> Path:
        """The coordinator's authority key, registry, codes and API keys."""
        return self.home / "hub"

    @property
    def models(self) -> Path:
        """The model library, unless the setting ``models_dir`` names another folder."""
        return self.home / "models"

    @property
    def shards(self) -> Path:
        """Content-addressed store of shards."""
        return self.home / "shards"

    @property
    def cache(self) -> Path:
        """Compiled blobs; may be deleted at any time."""
        return self.home / "cache"

    @property
    def logs(self) -> Path:
        """Rotated JSON lines, one file a process."""
        return self.home / "logs"

    @property
    def settings_file(self) -> Path:
        """The user's own settings, JSON."""
        return self.home / "settings.json"

    @property
    def pause_file(self) -> Path:
        """The user's pause while there is one, JSON; see :mod:`fleetapp.contribution.pauses`."""
        return self.home / "pause.json"

    @property
    def model_jobs_file(self) -> Path:
        """Work on models that is under way, JSON; see :mod:`fleetapp.agent.librarian`."""
        return self.home / "model-jobs.json"

    @property
    def lock_file(self) -> Path:
        """Held by the one agent of this home; see :mod:`fleetapp.platform.lock`."""
        return self.home / "agent.lock"

    @property
    def api_token(self) -> Path:
        """Token of the loopback API, readable by its user only."""
        return self.home / "api-token"

    @property
    def agent_file(self) -> Path:
        """Pid and loopback port of the running agent, JSON."""
        return self.home / "agent.json"


def default_home(environ: Mapping[str, str] | None = None) -> Path:
    """``FLEETAPP_HOME`` if set, else the user's local (never roaming) data folder."""
    env = os.environ if environ is None else environ
    if chosen := env.get("FLEETAPP_HOME", ""):
        return Path(chosen).expanduser().absolute()
    return Path(platformdirs.user_data_dir("fleetapp", appauthor=False, roaming=False))
