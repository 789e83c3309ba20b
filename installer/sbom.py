"""What is inside, for machines (CycloneDX) and for people (every licence text)."""

from __future__ import annotations

import hashlib
import json
import uuid
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from installer.inputs import Inputs, pins, sha256
from installer.paths import PYTHON_LOCK, ROOT

_NAMESPACE = uuid.UUID("4d1f6a0e-5a0f-4a59-9a53-4a8c8f3a6a10")
_TEXTS = ("licen", "copying", "notice", "third-party", "thirdparty", "authors")
_OF_PYTHON = "CPython"
_OF_CRT = "Microsoft Visual C++ run-time library, from the package msvc-runtime"
RUNTIME_LICENCE = "Microsoft's redistributable libraries, under the terms of Visual Studio."


def write(inputs: Inputs, stage: Path, version: str) -> None:
    """``sbom.cdx.json`` and ``licenses/`` into the staged tree."""
    components = _components(inputs, stage)
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, json.dumps(components))}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "fleetapp",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
    }
    (stage / "sbom.cdx.json").write_text(json.dumps(bom, indent=1) + "\n", encoding="utf-8")
    _licences(stage, components)


def _components(inputs: Inputs, stage: Path) -> list[dict[str, Any]]:
    """One a wheel that is in the tree, and the interpreter."""
    site = stage / "python/Lib/site-packages"
    about = {_plain(i.name.split("-")[0]): _headers(i) for i in site.glob("*.dist-info")}
    found = []
    for pin, wheel in inputs.wheels.items():
        headers = about.get(_plain(pin.name))
        if headers is None and pin.name != "msvc-runtime":
            continue  # locked and not shipped; see prune.py
        component: dict[str, Any] = {
            "type": "library",
            "name": pin.name,
            "version": pin.version,
            "purl": f"pkg:pypi/{pin.name}@{pin.version}",
            "hashes": [{"alg": "SHA-256", "content": sha256(wheel)}],
        }
        if licence := _licence(headers or {}):
            component["licenses"] = [{"license": {"name": licence}}]
        found.append(component)
    pin = pins(PYTHON_LOCK)[0]
    library = (stage / "python/python312.dll").read_bytes()
    found.append(
        {
            "type": "platform",
            "name": _OF_PYTHON,
            "version": _file_version(library) or pin.version,
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(library).hexdigest()}],
            "licenses": [{"license": {"id": "PSF-2.0"}}],
            "description": f"Embeddable tree, taken from {inputs.python.name}",
        }
    )
    return found


def _headers(info: Path) -> dict[str, str]:
    message = HeaderParser().parsestr((info / "METADATA").read_text("utf-8", "replace"))
    headers = dict(message.items())
    classes = [c for c in message.get_all("Classifier", []) if c.startswith("License ::")]
    headers["licence-class"] = "; ".join(c.rpartition(" :: ")[2] for c in classes)
    return headers


def _licence(headers: dict[str, str]) -> str:
    said = headers.get("License-Expression") or headers.get("licence-class") or ""
    return said or headers.get("License", "").splitlines()[0][:120] if headers else ""


def _licences(stage: Path, components: list[dict[str, Any]]) -> None:
    """One folder a component with every text it came with, and one index for people."""
    target = stage / "licenses"
    target.mkdir()
    (target / "fleetapp-LICENSE.txt").write_bytes((ROOT / "LICENSE").read_bytes())
    lines = [
        "fleetapp is licensed under the Apache License 2.0 (fleetapp-LICENSE.txt).",
        "It is distributed together with the following. Each licence text lies in this folder.",
        "Qt and PySide6 are used under the LGPL 3; their libraries are separate files that may be",
        "replaced by other builds of the same version.",
        "",
    ]
    site = stage / "python/Lib/site-packages"
    for component in sorted(components, key=lambda c: str(c["name"]).lower()):
        name = str(component["name"])
        texts = _copy_texts(site, name, target)
        if name == _OF_PYTHON:
            (target / "CPython").mkdir()
            (target / "CPython/LICENSE.txt").write_bytes(
                (stage / "python/LICENSE.txt").read_bytes()
            )
            texts = ["CPython/LICENSE.txt"]
        licence = component.get("licenses", [{"license": {}}])[0]["license"]
        said = licence.get("name") or licence.get("id") or ""
        if name == "msvc-runtime":
            said = RUNTIME_LICENCE
        lines.append(f"{name} {component['version']}: {said or 'see its text'}")
        lines += [f"    {text}" for text in texts]
    text = "\r\n".join(lines) + "\r\n"
    shown = stage / "app/resources/licenses"  # by the About box
    shown.mkdir(parents=True)
    for folder in (target, shown):
        (folder / "THIRD-PARTY.txt").write_text(text, encoding="utf-8", newline="")


def _copy_texts(site: Path, name: str, target: Path) -> list[str]:
    named = (i for i in site.glob("*.dist-info") if _plain(i.name.split("-")[0]) == _plain(name))
    info = next(named, None)
    if info is None:
        return []
    copied = []
    for file in sorted(p for p in info.rglob("*") if p.is_file()):
        if not any(word in file.name.lower() for word in _TEXTS):
            continue
        to = target / name / file.name
        if to.exists():
            to = to.with_name(f"{file.parent.name}-{file.name}")
        to.parent.mkdir(exist_ok=True)
        to.write_bytes(file.read_bytes())
        copied.append(to.relative_to(target).as_posix())
    return copied


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _file_version(library: bytes) -> str:
    """From the version resource: the text after ProductVersion, in UTF-16."""
    key = "ProductVersion\0".encode("utf-16-le")
    at = library.find(key)
    if at < 0:
        return ""
    value = library[at + len(key) : at + len(key) + 64]
    return value.decode("utf-16-le", "ignore").strip("\0").split("\0")[0]
