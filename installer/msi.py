"""The per-machine package for IT departments: a WiX source, made from the staged tree, for wixl."""

from __future__ import annotations

import hashlib
import os
import uuid
from pathlib import Path
from xml.sax.saxutils import quoteattr

from installer import launchers, stage
from installer.nsis import RUN_NAME
from installer.paths import PRODUCT, PUBLISHER, Work
from installer.run import tool

UPGRADE_CODE = "8E0C3E9F-6D1B-4A8E-9B51-4C0B6E0F7D21"
"""Never to be changed: by it Windows knows that one version replaces another."""
_NAMESPACE = uuid.UUID("6f1d0d0e-2f0b-4a55-9a86-0a1b5f3c2d11")
_RUN = r"Software\Microsoft\Windows\CurrentVersion\Run"
_SPECIAL = frozenset({"FleetApp.exe", "fleetapp-cli.exe", "fleetapp-worker.exe"})


def build(work: Work, version: str) -> None:
    """Make ``work.msi``, unsigned. wixl knows one compression only: this takes half a minute."""
    source = work.root / "fleetapp.wxs"  # wixl wants paths below the source's own folder
    source.write_text(document(work.stage, version, "objects/fleetapp.ico"), "utf-8")
    work.msi.unlink(missing_ok=True)
    tool(
        ["wixl", "--arch", "x64", "--output", work.msi, source],
        env={**os.environ, "SOURCE_DATE_EPOCH": str(stage.epoch())},
    )
    source.unlink()
    for query in _beyond_wixl():
        tool(["msibuild", work.msi, "-q", query])


def _beyond_wixl() -> list[str]:
    """What wixl has no words for (GNOME/msitools 0.101), written into the package's tables."""
    secure = "JOINCODE;AUTOSTART;ADDFIREWALL;WIX_UPGRADE_DETECTED;WIX_DOWNGRADE_DETECTED"
    queries = [
        f"UPDATE `Property` SET `Value` = '{secure}' WHERE `Property` = 'SecureCustomProperties'"
    ]
    # Wine asks again when the component goes; Windows does not, and it does no harm.
    going = 'OR REMOVE="ALL"'
    asked = {"Autostart": f'AUTOSTART="1" {going}', "JoinCode": f"JOINCODE {going}"}
    for component, condition in asked.items():
        queries.append(
            f"UPDATE `Component` SET `Condition` = '{condition}' WHERE `Component` = '{component}'"
        )
    sequence = "`InstallExecuteSequence`"
    # The old version goes before the new one comes, so that no file of it is left over.
    queries.append(
        f"UPDATE {sequence} SET `Sequence` = 1510 WHERE `Action` = 'RemoveExistingProducts'"
    )
    # After InstallInitialize, where work for the system begins, and before any file goes.
    queries.append(f"UPDATE {sequence} SET `Sequence` = 1550 WHERE `Action` = 'StopApp'")
    for number, (action, condition, command) in enumerate(_firewall()):
        queries.append(
            "INSERT INTO `CustomAction` (`Action`, `Type`, `Source`, `Target`) "
            f"VALUES ('{action}', {_COMMAND}, 'INSTALLDIR', '{command}')"
        )
        queries.append(
            f"INSERT INTO {sequence} (`Action`, `Condition`, `Sequence`) "
            f"VALUES ('{action}', '{condition}', {3600 + 500 * number})"
        )
    return queries


_COMMAND = 34 + 64 + 1024 + 2048
"""A command line in a folder; its failure is ignored; deferred; as the system."""


def _firewall() -> list[tuple[str, str, str]]:
    """Action, condition and command: rules for our program and the local subnet only, added if
    asked for, removed always.
    """
    netsh = '"[System64Folder]netsh.exe" advfirewall firewall'
    add = (
        f'{netsh} add rule name="{PRODUCT}" dir=in action=allow enable=yes '
        'profile=domain,private remoteip=localsubnet program="[INSTALLDIR]fleetapp-worker.exe"'
    )
    return [
        ("RemoveFirewall", 'REMOVE="ALL"', f'{netsh} delete rule name="{PRODUCT}"'),
        ("AddFirewall", 'ADDFIREWALL="1" AND NOT REMOVE', add),
    ]


def identify(*parts: str) -> str:
    """A GUID that is the same whenever the same thing is meant."""
    return str(uuid.uuid5(_NAMESPACE, "/".join(parts))).upper()


def name(prefix: str, path: str) -> str:
    """An identifier within the package; Windows Installer allows 72 characters."""
    return f"{prefix}_{hashlib.sha256(path.encode()).hexdigest()[:24]}"


def document(tree: Path, version: str, icon: str) -> str:
    """The whole source.

    Args:
        tree: what is installed.
        version: three numbers; Windows Installer compares no more.
        icon: shown in the list of programs; below the source's folder.
    """
    number = ".".join(map(str, launchers.quad(version)[:3]))
    components: list[str] = []
    files = _folder(tree, tree, components)
    references = "\n".join(f'      <ComponentRef Id="{c}"/>' for c in components)
    return f"""\
<?xml version="1.0" encoding="utf-8"?>
<Wix xmlns="http://schemas.microsoft.com/wix/2006/wi">
  <Product Id="{identify("product", version)}" Name="{PRODUCT}" Language="1033" Version="{number}"
           Manufacturer={quoteattr(PUBLISHER)} UpgradeCode="{UPGRADE_CODE}">
    <Package InstallerVersion="500" Compressed="yes" InstallScope="perMachine"
             Description="{PRODUCT} {version}" Manufacturer={quoteattr(PUBLISHER)}/>
    <MajorUpgrade DowngradeErrorMessage="A newer version of {PRODUCT} is installed already."/>
    <Media Id="1" Cabinet="fleetapp.cab" EmbedCab="yes"/>
    <Icon Id="fleetapp.ico" SourceFile={quoteattr(icon)}/>
    <Property Id="ARPPRODUCTICON" Value="fleetapp.ico"/>
    <Property Id="ARPNOMODIFY" Value="1"/>
    <Property Id="AUTOSTART" Value="1"/>
    <Property Id="ADDFIREWALL" Value="0"/>
    <Directory Id="TARGETDIR" Name="SourceDir">
      <Directory Id="ProgramMenuFolder"/>
      <Directory Id="ProgramFiles64Folder">
        <Directory Id="INSTALLDIR" Name="{PRODUCT}">
{files}
{_extras()}
        </Directory>
      </Directory>
    </Directory>
    <Feature Id="Complete" Title="{PRODUCT}" Level="1">
{references}
      <ComponentRef Id="Shortcut"/>
      <ComponentRef Id="Autostart"/>
      <ComponentRef Id="JoinCode"/>
    </Feature>
{_actions()}
  </Product>
</Wix>
"""


def _folder(folder: Path, tree: Path, components: list[str]) -> str:
    lines = []
    for entry in sorted(folder.iterdir(), key=lambda p: p.name):
        inside = entry.relative_to(tree).as_posix()
        if entry.is_dir():
            lines.append(f'<Directory Id="{name("d", inside)}" Name={quoteattr(entry.name)}>')
            lines.append(_folder(entry, tree, components))
            lines.append("</Directory>")
            continue
        component = name("c", inside)
        components.append(component)
        file = entry.name.replace("-", "_") if inside in _SPECIAL else name("f", inside)
        lines.append(
            f'<Component Id="{component}" Guid="{identify("file", inside)}" Win64="yes">'
            f'<File Id="{file}" KeyPath="yes" Name={quoteattr(entry.name)} '
            f"Source={quoteattr(f'stage/{inside}')}/></Component>"
        )
    return "\n".join(lines)


def _extras() -> str:
    """Entries for all users of the PC, each of them a component that a property switches."""
    return rf"""
          <Component Id="Shortcut" Guid="{identify("shortcut")}" Win64="yes">
            <Shortcut Id="StartMenu" Directory="ProgramMenuFolder" Name="{PRODUCT}"
                      Target="[INSTALLDIR]FleetApp.exe" WorkingDirectory="INSTALLDIR"/>
            <RegistryValue Root="HKLM" Key="Software\{PRODUCT}" Name="InstallDir" Type="string"
                           Value="[INSTALLDIR]" KeyPath="yes"/>
          </Component>
          <Component Id="Autostart" Guid="{identify("autostart")}" Win64="yes">
            <RegistryValue Root="HKLM" Key="{_RUN}" Name="{RUN_NAME}" Type="string"
                           Value="&quot;[INSTALLDIR]FleetApp.exe&quot;" KeyPath="yes"/>
          </Component>
          <Component Id="JoinCode" Guid="{identify("joincode")}" Win64="yes">
            <RegistryValue Root="HKLM" Key="Software\fleetapp" Name="JoinCode" Type="string"
                           Value="[JOINCODE]" KeyPath="yes"/>
          </Component>"""


def _actions() -> str:
    """What runs is ended before its files go; an upgrade removes the old version, which does it."""
    return """\
    <CustomAction Id="StopApp" FileKey="fleetapp_cli.exe" ExeCommand="setup stop"
                  Execute="deferred" Impersonate="no" Return="ignore"/>
    <InstallExecuteSequence>
      <Custom Action="StopApp" Before="RemoveFiles">REMOVE="ALL"</Custom>
    </InstallExecuteSequence>
"""
