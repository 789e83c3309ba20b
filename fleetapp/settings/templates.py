"""Policy templates for Windows, and the table of docs/settings.md: made from the schema. Pure.

``python -m fleetapp.settings.publish`` writes them; a test keeps them in step.
The format: "Group Policy ADMX Syntax Reference Guide", Microsoft.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from fleetapp.settings.kinds import MAX_TEXT
from fleetapp.settings.schema import SCHEMA, SECTIONS, Setting
from fleetapp.settings.words import in_language

KEY: Final = r"Software\Policies\fleetapp"
"""Below HKLM (machine) and HKCU (user); the platform for Windows reads it."""
CULTURES: Final[Mapping[str, str]] = {"en-US": "en", "de-DE": "de"}
_NAMESPACE = "http://schemas.microsoft.com/GroupPolicy/2006/07/PolicyDefinitions"
_SUPPORTED: Final[Mapping[str, str]] = {
    "en": "Windows 10 and later",
    "de": "Windows 10 und neuer",
}


@dataclass(frozen=True)
class _Notes:
    """What is said of each setting besides its own words."""

    default: str
    zero: str
    empty: str
    example: str
    about: str


_NOTES: Final[Mapping[str, _Notes]] = {
    "en": _Notes(
        default="Default: {value}.",
        zero="0: {nothing}.",
        empty="Empty: {nothing}.",
        example="Example: {example}.",
        about="A value set here cannot be changed by the user, who sees it with a lock. What is "
        "set for computers goes before what is set for users. Name: {name}",
    ),
    "de": _Notes(
        default="Vorgabe: {value}.",
        zero="0: {nothing}.",
        empty="Leer: {nothing}.",
        example="Beispiel: {example}.",
        about="Ein hier gesetzter Wert kann vom Benutzer nicht geändert werden; er sieht ihn mit "
        "einem Schloss. Was für Computer gesetzt ist, geht dem für Benutzer vor. Name: {name}",
    ),
}
_SWITCH: Final[Mapping[str, tuple[str, str]]] = {"en": ("on", "off"), "de": ("an", "aus")}


def admx() -> str:
    """The policies: one for each setting, for computers and users alike."""
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        "<!-- made by python -m fleetapp.settings.publish -->",
        f'<policyDefinitions xmlns="{_NAMESPACE}" revision="1.0" schemaVersion="1.0">',
        "  <policyNamespaces>",
        '    <target prefix="fleetapp" namespace="fleetapp.Policies" />',
        "  </policyNamespaces>",
        '  <resources minRequiredRevision="1.0" />',
        "  <supportedOn>",
        "    <definitions>",
        '      <definition name="SUPPORTED" displayName="$(string.SUPPORTED)" />',
        "    </definitions>",
        "  </supportedOn>",
        "  <categories>",
        '    <category name="fleetapp" displayName="$(string.fleetapp)" />',
    ]
    for section in SECTIONS:
        lines += [
            f'    <category name="section_{section}" displayName="$(string.section_{section})">',
            '      <parentCategory ref="fleetapp" />',
            "    </category>",
        ]
    lines += ["  </categories>", "  <policies>"]
    for setting in SCHEMA.values():
        lines += _policy(setting)
    lines += ["  </policies>", "</policyDefinitions>", ""]
    return "\n".join(lines)


def _policy(setting: Setting) -> list[str]:
    name, switch = setting.name, setting.kind.name == "switch"
    value = f' valueName="{name}"' if switch else f' presentation="$(presentation.{name})"'
    head = (
        f'    <policy name="{name}" class="Both" displayName="$(string.{name})" '
        f'explainText="$(string.{name}_help)" key="{KEY}"{value}>'
    )
    common = [
        head,
        f'      <parentCategory ref="section_{setting.section}" />',
        '      <supportedOn ref="SUPPORTED" />',
    ]
    if switch:
        body = [
            '      <enabledValue><decimal value="1" /></enabledValue>',
            '      <disabledValue><decimal value="0" /></disabledValue>',
        ]
    else:
        body = ["      <elements>", *_element(setting), "      </elements>"]
    return [*common, *body, "    </policy>"]


def _element(setting: Setting) -> list[str]:
    name, kind = setting.name, setting.kind
    at = f'id="{name}" valueName="{name}"'
    if kind.name == "number":
        limits = f'minValue="{kind.minimum}" maxValue="{kind.maximum}"'
        return [f'        <decimal {at} {limits} required="true" />']
    if kind.name == "choice":
        items = [
            f'          <item displayName="$(string.{name}_{option})">'
            f"<value><string>{option}</string></value></item>"
            for option in kind.options
        ]
        return [f'        <enum {at} required="true">', *items, "        </enum>"]
    return [f'        <text {at} maxLength="{MAX_TEXT}" />']


def adml(language: str) -> str:
    """The words of the policies in one of the languages that ship."""

    def words(text: str) -> str:
        return in_language(text, language)

    strings = {"SUPPORTED": _SUPPORTED[language], "fleetapp": "fleetapp"}
    strings |= {f"section_{name}": words(title) for name, title in SECTIONS.items()}
    shown = []
    for setting in SCHEMA.values():
        strings[setting.name] = words(setting.words.label)
        strings[f"{setting.name}_help"] = explanation(setting, language)
        for option, title in setting.kind.options.items():
            strings[f"{setting.name}_{option}"] = words(title)
        if setting.kind.name != "switch":
            shown += _presentation(setting, language)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        "<!-- made by python -m fleetapp.settings.publish -->",
        f'<policyDefinitionResources xmlns="{_NAMESPACE}" revision="1.0" schemaVersion="1.0">',
        "  <displayName>fleetapp</displayName>",
        "  <description>Settings of fleetapp</description>",
        "  <resources>",
        "    <stringTable>",
    ]
    lines += [f'      <string id="{k}">{escape(v)}</string>' for k, v in strings.items()]
    lines += ["    </stringTable>", "    <presentationTable>", *shown]
    lines += ["    </presentationTable>", "  </resources>", "</policyDefinitionResources>", ""]
    return "\n".join(lines)


def _presentation(setting: Setting, language: str) -> list[str]:
    kind = setting.kind
    label = in_language(setting.words.label, language)
    unit = f" ({in_language(kind.unit, language)})" if kind.unit else ""
    title = escape(f"{label}{unit}:")
    at = f"refId={quoteattr(setting.name)}"
    if kind.name == "number":
        control = f'<decimalTextBox {at} defaultValue="{setting.default}">{title}</decimalTextBox>'
    elif kind.name == "choice":
        chosen = list(kind.options).index(setting.default)
        control = f'<dropdownList {at} noSort="true" defaultItem="{chosen}">{title}</dropdownList>'
    else:
        default = escape(str(setting.default or ""))
        control = (
            f"<textBox {at}><label>{title}</label><defaultValue>{default}</defaultValue></textBox>"
        )
    return [
        f'      <presentation id="{setting.name}">',
        f"        {control}",
        "      </presentation>",
    ]


def explanation(setting: Setting, language: str = "en") -> str:
    """Everything an administrator should know of a setting."""
    notes, kind = _NOTES[language], setting.kind
    said = [in_language(setting.words.help, language)]
    said.append(notes.default.format(value=_default(setting, language)))
    if setting.words.nothing:
        template = notes.zero if kind.name == "number" else notes.empty
        said.append(template.format(nothing=in_language(setting.words.nothing, language)))
    if kind.example:
        said.append(notes.example.format(example=kind.example))
    return f"{' '.join(said)}\n\n{notes.about.format(name=setting.name)}"


def _default(setting: Setting, language: str) -> str:
    value, kind = setting.default, setting.kind
    if kind.name == "switch":
        return _SWITCH[language][0 if value else 1]
    if kind.name == "choice":
        return in_language(kind.options[value], language)
    if value in (None, "", 0) and setting.words.nothing:
        return in_language(setting.words.nothing, language)
    return f"{value} {in_language(kind.unit, language)}".strip()


_APPLIES = {"now": "at once", "next load": "next load", "restart": "restart"}


def table() -> str:
    """Markdown: a heading and a table for each section."""
    lines: list[str] = []
    for section, title in SECTIONS.items():
        lines += [f"### {title}", "", "| setting | what | default | acts |", "|---|---|---|---|"]
        for setting in SCHEMA.values():
            if setting.section == section:
                choice = setting.kind.name == "choice"
                default = f"`{setting.default}`" if choice else _default(setting, "en")
                acts = _APPLIES[setting.applies]
                lines.append(f"| `{setting.name}` | {setting.help} | {default} | {acts} |")
        lines.append("")
    return "\n".join(lines)
