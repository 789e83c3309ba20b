"""A Windows PC in software: Wine 10 or newer, a prefix of its own, and a screen.

Debian 12 has a Wine that lacks too much, so there it runs from a trixie root file system, which is
made once and kept beside the inputs of the build. The shims (tests/packaging/shims) stand in for
what Wine has not got; they go into the prefix, never into the product.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from installer.paths import cache

SHIMS = Path(__file__).parents[1] / "packaging/shims"
WINE_MAJOR = 10
_OVERRIDES = (
    "mscoree,mshtml,winemenubuilder.exe=;"
    "ucrtbase,mscms,msvcp140,msvcp140_1,msvcp140_2,msvcp140_atomic_wait,msvcp140_codecvt_ids,"
    "concrt140,vcruntime140,vcruntime140_1=n,b"
)
_RUN = """
set -e
mount --make-rprivate /
if [ -n "$WINE_ROOT" ]; then
  mount -t proc proc "$WINE_ROOT/proc"
  mount --rbind /sys "$WINE_ROOT/sys"
  mount --rbind /dev "$WINE_ROOT/dev"
  while read -r folder; do
    mkdir -p "$WINE_ROOT$folder"
    mount --rbind "$folder" "$WINE_ROOT$folder"
  done <<<"$WINE_SHARED"
  mkdir -p "$WINE_ROOT/tmp/.X11-unix"
  [ -d /tmp/.X11-unix ] && mount --bind /tmp/.X11-unix "$WINE_ROOT/tmp/.X11-unix"
fi
mount --bind "$WINE_PASSWD" "$WINE_ROOT/etc/passwd"
if [ -d "$WINE_POWER" ]; then mount --bind "$WINE_POWER" "$WINE_ROOT/sys/class/power_supply"; fi
if [ -n "$WINE_ROOT" ]; then exec chroot "$WINE_ROOT" sh -c 'cd "$0" && exec "$@"' "$PWD" "$@"; fi
exec "$@"
"""


def why_not() -> str:
    """Why no Windows program can be run here; empty if one can."""
    if os.geteuid() != 0:
        return "needs root, to give Wine a user and a file system of its own"
    for program in ("unshare", "mount", "Xvfb", "xdotool", "x86_64-w64-mingw32-gcc"):
        if shutil.which(program) is None:
            return f"{program} is not installed (group windows of debian-packages.txt)"
    if _native() or (wine_root() / "complete").exists():
        return ""
    return f"no Wine {WINE_MAJOR} here; `make windows-tools` brings one"


def _native() -> bool:
    wine = shutil.which("wine")
    if wine is None:
        return False
    said = subprocess.run([wine, "--version"], capture_output=True, timeout=60, check=False)
    found = re.match(r"wine-(\d+)", said.stdout.decode())
    return found is not None and int(found[1]) >= WINE_MAJOR


def wine_root() -> Path:
    """The root file system with Wine in it, where this machine's own is too old."""
    return cache() / "wine-trixie"


def _mirror() -> str:
    """Where this machine has its own Debian packages from."""
    said = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    found = [line.split()[0] for line in said.splitlines() if line.endswith(" Debian")]
    main = [uri for uri in found if "security" not in uri]
    if not main:
        raise SystemExit("this machine's package lists name no mirror of Debian: apt-get update")
    return main[0].rstrip("/")


def provide() -> None:
    """Make the root file system with Wine, once: 1.2 GB, five minutes (``make windows-tools``)."""
    root = wine_root()
    if _native() or (root / "complete").exists():
        return
    fresh = root.with_name(f"{root.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.parent.mkdir(parents=True, exist_ok=True)
    try:
        bootstrap = ["debootstrap", "--variant=minbase", "--include=ca-certificates", "trixie"]
        mirror = _mirror()
        subprocess.run([*bootstrap, fresh, mirror], check=True, stdout=subprocess.DEVNULL)
        for file in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{file}", fresh / "etc" / file)
        shutil.copytree("/etc/apt/apt.conf.d", fresh / "etc/apt/apt.conf.d", dirs_exist_ok=True)
        (fresh / "etc/apt/sources.list").write_text(f"deb {mirror} trixie main\n", "ascii")
        install = (
            "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "
            "--no-install-recommends wine wine64 fonts-dejavu-core && apt-get clean"
        )
        script = (
            'mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" sh -c "$1"'
        )
        subprocess.run(
            ["unshare", "-m", "--propagation", "private", "bash", "-ec", script, fresh, install],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (fresh / "complete").touch()
        shutil.rmtree(root, ignore_errors=True)
        fresh.rename(root)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


class Windows:
    """One Windows PC with one user, in a folder of its own. Use as a context manager.

    Args:
        folder: everything of this PC lies below it, and programs see it as ``Z:\\…``.
        user: name of the account.
        shared: more folders that its programs may see.
        display: an X server to show windows on.
        env: more variables for its programs.
    """

    def __init__(
        self,
        folder: Path,
        *,
        user: str = "root",
        shared: Sequence[Path] = (),
        display: str = "",
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.user, self.display = folder, user, display
        folder.mkdir(parents=True, exist_ok=True)
        self.prefix = folder / "prefix"
        self.one_core = False
        """Whether programs started from now on have one core: see docs/windows-build.md."""
        self._native = _native()
        self._shared = [folder, *shared]
        self.env = dict(env or {})
        self._passwd = folder / "passwd"
        self._passwd.write_text(f"{user}:x:0:0:{user}:/root:/bin/sh\n", encoding="utf-8")
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Windows:
        if not self.prefix.exists():
            shutil.copytree(self._template(), self.prefix, symlinks=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.run("wineserver", "-k", deadline=60, check=False)
        for process in self._started:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(15)
        self._started.clear()

    # ------------------------------------------------------------------ where things are

    @property
    def drive(self) -> Path:
        return self.prefix / "drive_c"

    @property
    def local(self) -> Path:
        """``%LOCALAPPDATA%``."""
        return self.drive / "users" / self.user / "AppData/Local"

    def windows_path(self, path: Path) -> str:
        """How its programs call a file of ours."""
        if path.is_relative_to(self.drive):
            return "C:\\" + str(path.relative_to(self.drive)).replace("/", "\\")
        return "Z:" + str(path.absolute()).replace("/", "\\")

    # ------------------------------------------------------------------ running programs

    def start(self, *command: str | Path, **env: str) -> subprocess.Popen[bytes]:
        """A program that goes on; ends with this PC at the latest."""
        log = (self.folder / "output.txt").open("ab")
        process = subprocess.Popen(
            self._line(command),
            env=self._environment(env),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        log.close()
        self._started.append(process)
        return process

    def run(
        self, *command: str | Path, deadline: float = 300, check: bool = True, **env: str
    ) -> subprocess.CompletedProcess[bytes]:
        """A program to its end; ``returncode`` is the Windows program's."""
        output = self.folder / f"run-{time.monotonic_ns()}.txt"
        # A file and no pipe: what the program leaves running would hold a pipe open.
        with output.open("wb") as file:
            done = subprocess.run(
                self._line(command),
                env=self._environment(env),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=deadline,
                check=False,
            )
        done.stdout = output.read_bytes().replace(b"\r\n", b"\n")
        output.unlink()
        if check and done.returncode:
            said = done.stdout.decode("utf-8", "replace")[-3000:]
            raise AssertionError(f"{command} ended with {done.returncode}:\n{said}")
        return done

    def wine(
        self, *command: str | Path, deadline: float = 300, check: bool = True, **env: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a Windows program to its end."""
        return self.run("wine", *command, deadline=deadline, check=check, **env)

    def registry(self, key: str) -> str:
        """What lies below a key, as ``reg query /s`` says it; empty if there is no such key."""
        done = self.wine("reg", "query", key, "/s", check=False)
        return "" if done.returncode else done.stdout.decode("utf-8", "replace")

    def supply(self, *, mains: bool, battery: float | None) -> None:
        """For programs started from now on: whether it is plugged in, and percent of charge."""
        folder = self.folder / "power"
        shutil.rmtree(folder, ignore_errors=True)
        files = {"AC/type": "Mains", "AC/online": str(int(mains))}
        if battery is not None:
            status = "Charging" if mains else "Discharging"
            files |= {"BAT0/type": "Battery", "BAT0/status": status, "BAT0/present": "1"}
            files |= {"BAT0/voltage_now": "12000000", "BAT0/charge_full": "4000000"}
            files |= {"BAT0/charge_now": str(round(40_000 * battery)), "BAT0/current_now": "500000"}
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"{text}\n", encoding="ascii")

    def processes(self, *names: str) -> dict[psutil.Process, list[str]]:
        """Its running programs of these names, as Linux sees them, with their command lines."""
        found = {}
        for process in psutil.process_iter(["cmdline", "environ", "status"]):
            line = process.info["cmdline"] or []
            program = line[0].replace("\\", "/").rsplit("/", 1)[-1].lower() if line else ""
            if program not in [n.lower() for n in names] or process.info["status"] == "zombie":
                continue
            if (process.info["environ"] or {}).get("WINEPREFIX") == str(self.prefix):
                found[process] = line
        return found

    def _environment(self, env: Mapping[str, str]) -> dict[str, str]:
        keep = ("PATH", "LANG")
        return {
            **{name: os.environ[name] for name in keep if name in os.environ},
            "HOME": "/root",
            "LC_ALL": "C.UTF-8",
            "XDG_RUNTIME_DIR": "/tmp",
            "DISPLAY": self.display,
            "WINEPREFIX": str(self.prefix),
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": _OVERRIDES,
            "WINE_ROOT": "" if self._native else str(wine_root()),
            "WINE_SHARED": "\n".join(map(str, self._shared)),
            "WINE_PASSWD": str(self._passwd),
            "WINE_POWER": str(self.folder / "power"),
            **self.env,
            **env,
        }

    def _line(self, command: Sequence[str | Path]) -> list[str]:
        line = ["unshare", "-m", "--propagation", "private", "bash", "-c", _RUN, "wine"]
        if self.one_core:
            line = ["taskset", "-c", str(max(os.sched_getaffinity(0))), *line]
        return line + [str(part) for part in command]

    def _template(self) -> Path:
        """A fresh prefix with the shims in it, made once per Wine, user and shim."""
        from tests.support import wine_shims  # noqa: PLC0415 - it needs the compiler

        sources = b"".join(p.read_bytes() for p in sorted(SHIMS.iterdir()) if p.is_file())
        version = self.run("wine", "--version").stdout
        code = Path(wine_shims.__file__).read_bytes()
        key = hashlib.sha256(b"1" + sources + code + version + self.user.encode()).hexdigest()[:16]
        template = cache() / f"wine-prefix-{key}"
        if template.exists():
            return template
        assert not self.prefix.exists()
        self.run("wineboot", "-i", deadline=600)
        self.run("wineserver", "-w", deadline=120)
        root = Path("/") if self._native else wine_root()
        libraries = root / "usr/lib/x86_64-linux-gnu/wine/x86_64-windows"
        wine_shims.build(libraries, self.prefix / "drive_c/windows/system32")
        fresh = template.with_name(f"{template.name}.{os.getpid()}")
        shutil.move(self.prefix, fresh)
        fresh.rename(template)
        return template


if __name__ == "__main__":
    provide()
