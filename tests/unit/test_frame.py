"""The project keeps its promises on dependencies, licence, and what its files may name."""

from __future__ import annotations

import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?(?P<range>[^;]*)")

# Its versions are calendar dates and it keeps its command line stable: any newer one will do.
NO_UPPER_BOUND = {"pip"}


@cache
def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _required() -> dict[str, dict[str, str]]:
    """Version range by package, by group, as pyproject.toml has them."""
    groups = {"run": _project()["dependencies"], **_project()["optional-dependencies"]}
    found: dict[str, dict[str, str]] = {}
    for group, lines in groups.items():
        for line in lines:
            match = REQUIREMENT.match(line)
            assert match, line
            found.setdefault(group, {})[match["name"]] = match["range"].strip()
    return found


def _documented() -> dict[str, dict[str, list[str]]]:
    """Cells after the name by package, by group, as docs/dependencies.md has them."""
    found: dict[str, dict[str, list[str]]] = {}
    group = ""
    for line in (ROOT / "docs/dependencies.md").read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## (?:(Run time)|Extra `(\w+)`)", line):
            group = "run" if heading[1] else heading[2]
        elif line.startswith("| ") and not line.startswith("| package"):
            name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            found.setdefault(group, {})[name] = cells
    return found


def _files() -> list[Path]:
    """Files of the repository: what git knows and what it would add."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout, so nobody knows which files belong to it")
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def test_every_dependency_has_its_row_and_every_row_its_dependency() -> None:
    assert {group: set(names) for group, names in _documented().items()} == {
        group: set(names) for group, names in _required().items()
    }


def test_every_row_says_why_under_which_licence_and_what_instead() -> None:
    incomplete = [
        name
        for rows in _documented().values()
        for name, cells in rows.items()
        if len(cells) != 3 or not all(cells)
    ]
    assert not incomplete


def test_every_dependency_has_a_lower_and_an_upper_bound() -> None:
    open_ended = [
        f"{name}{versions}"
        for group in _required().values()
        for name, versions in group.items()
        if not versions.startswith("==")
        and not (">=" in versions and ("<" in versions or name in NO_UPPER_BOUND))
    ]
    assert not open_ended


def test_the_licence_is_apache_2() -> None:
    assert _project()["license"] == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text


def test_no_file_names_the_host_of_a_package_registry() -> None:
    """Whoever installs this has an index or a mirror of their own; we name packages only."""
    # put together here, or this file would be the first to fail
    hosts = [
        ".".join(parts)
        for parts in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("npmjs", "org"),
            ("deb", "debian", "org"),
            ("archive", "ubuntu", "com"),
            ("proxy", "golang", "org"),
            ("crates", "io"),
        )
    ]
    needle = re.compile("|".join(re.escape(host) for host in hosts).encode(), re.IGNORECASE)
    named = [str(path.relative_to(ROOT)) for path in _files() if needle.search(path.read_bytes())]
    assert not named


def test_debian_packages_are_listed_once_each_with_a_known_group() -> None:
    rows = [
        line.split(maxsplit=2)
        for line in (ROOT / "debian-packages.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    assert all(len(row) == 3 for row in rows), "group, package, what for"
    assert {group for group, _, _ in rows} == {"python", "desktop", "test", "windows"}
    names = [name for _, name, _ in rows]
    assert len(names) == len(set(names))
