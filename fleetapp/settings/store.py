"""The user's own settings on disk, merged with environment and policy."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable, Mapping

import filelock

from fleetapp.errors import BadSetting, ManagedByPolicy, StorageError
from fleetapp.platform import current
from fleetapp.platform.base import Platform
from fleetapp.platform.files import storage_error, unusable
from fleetapp.platform.paths import Paths
from fleetapp.settings.resolve import Layer, environment_layer, resolve
from fleetapp.settings.schema import SCHEMA, Setting, Settings

_LOCK_SECONDS = 5.0


class SettingsStore:
    """Reads all layers afresh on every :meth:`load`; nothing is cached, so nothing goes stale.

    Args:
        paths: whose ``settings_file`` is the user's layer.
        platform: where policy comes from; the current one if left out.
        environ: the environment; the process's own if left out.
    """

    def __init__(
        self,
        paths: Paths,
        platform: Platform | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._paths = paths
        self._file = paths.settings_file
        self._platform = current() if platform is None else platform
        self._environ = os.environ if environ is None else environ

    def load(self) -> Settings:
        """Precedence: default < user < environment < user policy < machine policy.

        Raises:
            BadSetting: the file is broken (it is left as it is) or a value makes no sense.
        """
        return self._resolve(self._read_user())

    def set_user(self, name: str, value: object) -> Settings:
        """Check and keep one value in the user's file; answers all settings as they are then.

        Raises:
            BadSetting: no such setting, no such value, a folder that cannot be used, or the file
                is broken (and left alone).
            ManagedByPolicy: an administrator has laid this one down.
            ReadOnly, DiskFull, StorageError: the file could not be written.
        """
        setting = known(name)
        typed = setting.accept(value)
        kept = typed
        if setting.kind.name == "folder":
            kept = str(typed or "")
            # only here: a folder that is gone later, as a disk that is not plugged in, is no reason
            # to take none of the settings
            if typed is not None and (why := unusable(typed)):
                raise BadSetting(
                    f"The setting {name} cannot be {typed}: {why}.",
                    remedy="It was not changed. Choose a folder that you can write to.",
                )
        return self._change(name, lambda values: values.update({name: kept}))

    def reset_user(self, name: str) -> Settings:
        """Forget the user's own value of one setting. Raises as :meth:`set_user` does."""
        known(name)
        return self._change(name, lambda values: values.pop(name, None))

    def _change(self, name: str, change: Callable[[dict[str, object]], object]) -> Settings:
        self._platform.make_private_dir(self._paths.home)
        lock = filelock.FileLock(self._file.with_name(f"{self._file.name}.lock"))
        try:
            with lock.acquire(timeout=_LOCK_SECONDS):
                values = self._read_user()
                origin = self._resolve(values).origin(name)
                if origin.locked:
                    raise ManagedByPolicy(
                        f"The setting {name} is managed by {origin.where} and cannot be changed."
                    )
                change(values)
                settings = self._resolve(values)
                text = json.dumps(values, indent=2, ensure_ascii=False, sort_keys=True)
                self._platform.write_private(self._file, text.encode() + b"\n")
        except filelock.Timeout as exc:
            raise StorageError(
                f"Another program keeps {self._file} locked.", remedy="Try again in a moment."
            ) from exc
        except OSError as exc:
            raise storage_error(exc, self._file) from exc
        return settings

    def _resolve(self, user: Mapping[str, object]) -> Settings:
        user_policy, machine = self._platform.policy("user"), self._platform.policy("machine")
        return resolve(
            (
                Layer("user", str(self._file), user),
                environment_layer(self._environ),
                Layer("user policy", user_policy.source, user_policy.values),
                Layer("machine policy", machine.source, machine.values),
            )
        )

    def _read_user(self) -> dict[str, object]:
        try:
            values = json.loads(self._file.read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            return {}
        except OSError as exc:
            raise BadSetting(
                f"Your settings in {self._file} cannot be read ({exc.strerror}).",
                remedy="Make the file readable; it was not changed.",
            ) from exc
        except ValueError as exc:
            raise self._broken(str(exc)) from exc
        if not isinstance(values, dict):
            raise self._broken("it is not a JSON object")
        return values

    def _broken(self, why: str) -> BadSetting:
        return BadSetting(
            f"Your settings in {self._file} are broken ({why}).",
            remedy="Correct the file or move it away; it was not changed.",
        )


def known(name: str) -> Setting:
    """The declaration of a name.

    Raises:
        BadSetting: there is none; names the nearest one.
    """
    if name in SCHEMA:
        return SCHEMA[name]
    near = difflib.get_close_matches(name, SCHEMA, n=1)
    raise BadSetting(
        f"There is no setting called {name}.",
        remedy=f"Did you mean {near[0]}?" if near else "'fleetapp settings' lists them all.",
    )
