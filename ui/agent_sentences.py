"""English sentences of the agent that the desktop app knows in other languages; see agent_words."""

from __future__ import annotations

from collections.abc import Mapping


def QT_TRANSLATE_NOOP(_context: str, text: str) -> str:  # noqa: N802 - the name lupdate looks for
    """Mark ``text`` for translation; PySide6 has the same, typed as object."""
    return text


REASONS: tuple[str, ...] = (
    # why this PC works for the fleet or not: fleetapp/contribution/rules.py
    QT_TRANSLATE_NOOP("Agent", "This PC works for the fleet when it is asked to."),
    QT_TRANSLATE_NOOP("Agent", "Finishing running answers, then pausing."),
    QT_TRANSLATE_NOOP("Agent", "Finishing running answers, then pausing until {when}."),
    QT_TRANSLATE_NOOP("Agent", "Contributing is switched off by {where}."),
    QT_TRANSLATE_NOOP("Agent", "This PC does not contribute."),
    QT_TRANSLATE_NOOP("Agent", "No device of this PC is lent to the fleet."),
    QT_TRANSLATE_NOOP("Agent", "Paused until you resume."),
    QT_TRANSLATE_NOOP("Agent", "Paused until {when}."),
    QT_TRANSLATE_NOOP("Agent", "This PC goes to sleep."),
    QT_TRANSLATE_NOOP("Agent", "Paused by the schedule."),
    QT_TRANSLATE_NOOP("Agent", "Paused by the schedule until {when}."),
    QT_TRANSLATE_NOOP("Agent", "Paused on battery."),
    QT_TRANSLATE_NOOP("Agent", "Paused while this PC saves power."),
    QT_TRANSLATE_NOOP("Agent", "Paused below {floor}% of charge."),
    QT_TRANSLATE_NOOP("Agent", "Paused on a metered network."),
    QT_TRANSLATE_NOOP("Agent", "Paused while a program fills the screen."),
    QT_TRANSLATE_NOOP("Agent", "Paused while an exclusive program runs."),
    QT_TRANSLATE_NOOP("Agent", "Paused while {program} runs."),
    QT_TRANSLATE_NOOP("Agent", "Paused because the processor is hot."),
    QT_TRANSLATE_NOOP("Agent", "Paused because memory is short."),
    QT_TRANSLATE_NOOP("Agent", "Paused because the disk is nearly full."),
    QT_TRANSLATE_NOOP(
        "Agent", "Paused while other programs use more than {limit}% of the processor."
    ),
    QT_TRANSLATE_NOOP("Agent", "Paused while somebody uses this PC."),
)

STATES: tuple[str, ...] = (
    # fleetapp/agent
    QT_TRANSLATE_NOOP("Agent", "This PC is changing its role in the fleet."),
    QT_TRANSLATE_NOOP("Agent", "This PC belongs to no fleet yet."),
    QT_TRANSLATE_NOOP("Agent", "This PC belongs to no fleet."),
    QT_TRANSLATE_NOOP("Agent", "Holds layers {layers} of {model}."),
    QT_TRANSLATE_NOOP("Agent", "Holds layers {layers} of {model} ready for the fleet."),
    QT_TRANSLATE_NOOP("Agent", "Connected; waiting for work."),
    QT_TRANSLATE_NOOP("Agent", "Looking for the coordinator."),
    QT_TRANSLATE_NOOP("Agent", "The connection to the coordinator ended."),
    QT_TRANSLATE_NOOP("Agent", "The coordinator has gone silent."),
    QT_TRANSLATE_NOOP("Agent", "The coordinator is not reachable now."),
    QT_TRANSLATE_NOOP("Agent", "The coordinator cannot be reached: {why}."),
    QT_TRANSLATE_NOOP("Agent", "Joining took too long."),
    QT_TRANSLATE_NOOP("Agent", "Try again, or ask the admin to approve."),
    QT_TRANSLATE_NOOP("Agent", "The coordinator does not count this PC as a member any more."),
    QT_TRANSLATE_NOOP("Agent", "Waiting for the admin to approve this PC; its id is {device}."),
)

PHASES: tuple[str, ...] = (
    # of the first shard: fleetapp/agent/agent.py
    QT_TRANSLATE_NOOP("Agent", "Waiting {model}."),
    QT_TRANSLATE_NOOP("Agent", "Downloading {model}."),
    QT_TRANSLATE_NOOP("Agent", "Verifying {model}."),
    QT_TRANSLATE_NOOP("Agent", "Compiling {model}."),
    QT_TRANSLATE_NOOP("Agent", "Loading {model}."),
)

ERRORS: tuple[str, ...] = (
    # joining: fleetapp/fleet, fleetapp/hub, fleetapp/agent
    QT_TRANSLATE_NOOP("Agent", "The hub does not know this join code."),
    QT_TRANSLATE_NOOP("Agent", "This join code has expired."),
    QT_TRANSLATE_NOOP("Agent", "This join code was revoked."),
    QT_TRANSLATE_NOOP("Agent", "This join code has been used as often as it may be."),
    QT_TRANSLATE_NOOP("Agent", "Too many wrong join codes came from this address."),
    QT_TRANSLATE_NOOP("Agent", "This is far too long to be a join code."),
    QT_TRANSLATE_NOOP("Agent", "The join code is mistyped: its check character does not match."),
    QT_TRANSLATE_NOOP("Agent", "The join code is mistyped."),
    QT_TRANSLATE_NOOP("Agent", "A join code begins with {prefix}-, and this does not."),
    QT_TRANSLATE_NOOP("Agent", "A join code never contains {letter}."),
    QT_TRANSLATE_NOOP(
        "Agent", "The join code has {found} characters after {prefix}-, but {needed} are needed."
    ),
    QT_TRANSLATE_NOOP("Agent", "The admin declined to let this PC into the fleet."),
    QT_TRANSLATE_NOOP("Agent", "Ask the admin for another join code."),
    QT_TRANSLATE_NOOP(
        "Agent", "The hub that answered belongs to another fleet than the join code."
    ),
    QT_TRANSLATE_NOOP(
        "Agent", "Check the hub's address, or ask the admin for a code of that fleet."
    ),
    QT_TRANSLATE_NOOP("Agent", "'{text}' is not an address of the form host:port."),
    QT_TRANSLATE_NOOP(
        "Agent", "Give the coordinator's address with its control port, e.g. 192.0.2.7:8485."
    ),
    QT_TRANSLATE_NOOP("Agent", "A fleet's name has 1 to 64 printable characters."),
    QT_TRANSLATE_NOOP("Agent", "Another PC of this fleet is called {name} ({device})."),
    QT_TRANSLATE_NOOP("Agent", "Choose a name that no other PC has."),
    QT_TRANSLATE_NOOP("Agent", "This PC already belongs to the fleet '{fleet}'."),
    QT_TRANSLATE_NOOP("Agent", "This PC is not the coordinator of its fleet."),
    QT_TRANSLATE_NOOP("Agent", "Do this on the coordinator."),
    QT_TRANSLATE_NOOP("Agent", "Pausing is switched off by {where}."),
    QT_TRANSLATE_NOOP("Agent", "The setting {name} is managed by {where} and cannot be changed."),
    QT_TRANSLATE_NOOP("Agent", "The setting {name} cannot be {folder}: {why}."),
    QT_TRANSLATE_NOOP("Agent", "It was not changed."),
    QT_TRANSLATE_NOOP("Agent", "It was not changed. Choose a folder that you can write to."),
    QT_TRANSLATE_NOOP("Agent", "Port {port} on {host} is used by another program."),
    QT_TRANSLATE_NOOP(
        "Agent",
        "Stop that program, or choose another port with the setting {setting} "
        "(0 takes any free one).",
    ),
    # answering: fleetapp/hub, fleetapp/api
    QT_TRANSLATE_NOOP("Agent", "No model is being served."),
    QT_TRANSLATE_NOOP("Agent", "There is no model '{model}' here."),
    QT_TRANSLATE_NOOP("Agent", "The coordinator is shutting down."),
    QT_TRANSLATE_NOOP("Agent", "Ask again when it is back, or another PC coordinates."),
    QT_TRANSLATE_NOOP("Agent", "This PC belongs to no fleet, so nothing can answer."),
    QT_TRANSLATE_NOOP("Agent", "Check that it runs; this PC reconnects by itself."),
    QT_TRANSLATE_NOOP("Agent", "{count} requests are waiting already."),
    QT_TRANSLATE_NOOP("Agent", "Try again later, or add PCs to the fleet."),
    QT_TRANSLATE_NOOP("Agent", "The shard did not load in time and was stopped."),
    QT_TRANSLATE_NOOP("Agent", "{name} left the fleet while it held a stage."),
    QT_TRANSLATE_NOOP("Agent", "{name} stopped contributing."),
    QT_TRANSLATE_NOOP("Agent", "The coordinator has gone while it was answering."),
    QT_TRANSLATE_NOOP("Agent", "This PC was removed from the fleet while it was being answered."),
    QT_TRANSLATE_NOOP("Agent", "Ask again; this PC reconnects by itself."),
    QT_TRANSLATE_NOOP("Agent", "There is no room left to write {path}."),
    QT_TRANSLATE_NOOP(
        "Agent", "{what} needs {needed} on the disk of {path}, which has {free} free."
    ),
    QT_TRANSLATE_NOOP("Agent", "Try again in a moment."),
)

REMEDIES: tuple[str, ...] = (
    # what a class of error says by itself: fleetapp/errors.py
    QT_TRANSLATE_NOOP("Agent", "Shorten the prompt or start a new conversation."),
    QT_TRANSLATE_NOOP("Agent", "Send JSON with the header 'Content-Type: application/json'."),
    QT_TRANSLATE_NOOP(
        "Agent", "Send the header 'Authorization: Bearer <key>' with a key of this fleet."
    ),
    QT_TRANSLATE_NOOP("Agent", "Ask the administrator if it has to change."),
    QT_TRANSLATE_NOOP("Agent", "Give a GGUF file or a folder that holds openvino_model.xml."),
    QT_TRANSLATE_NOOP("Agent", "Get the file again; nothing was imported."),
    QT_TRANSLATE_NOOP(
        "Agent", "Free some space or choose another folder; what was fetched so far is kept."
    ),
    QT_TRANSLATE_NOOP(
        "Agent", "Choose a folder that can be written with --state or FLEETAPP_HOME."
    ),
    QT_TRANSLATE_NOOP("Agent", "Start it again; a download goes on where it stopped."),
    QT_TRANSLATE_NOOP("Agent", "The damaged part is dropped and fetched again."),
    QT_TRANSLATE_NOOP("Agent", "Check it character by character or ask the admin for a new one."),
    QT_TRANSLATE_NOOP("Agent", "Ask the admin for a new one."),
    QT_TRANSLATE_NOOP(
        "Agent", "Wait a minute, then try again with the code as the admin shows it."
    ),
    QT_TRANSLATE_NOOP("Agent", "Join the fleet with a join code first."),
    QT_TRANSLATE_NOOP("Agent", "Nothing to do: it is given an identity of its own."),
    QT_TRANSLATE_NOOP("Agent", "Update the older of the two."),
    QT_TRANSLATE_NOOP("Agent", "Ask again; the fleet repairs itself within seconds."),
    QT_TRANSLATE_NOOP("Agent", "Ask again; the runner is started anew."),
    QT_TRANSLATE_NOOP("Agent", "The fleet goes on without this PC; it comes back by itself."),
)

CHECKS: tuple[str, ...] = (
    # of the network, for the first run: fleetapp/agent/checks, fleetapp/fleet/multicast.py
    QT_TRANSLATE_NOOP(
        "Agent", "mDNS finds {peers} other PCs, {coordinators} of them coordinators."
    ),
    QT_TRANSLATE_NOOP("Agent", "mDNS is possible on {addresses}."),
    QT_TRANSLATE_NOOP("Agent", "No network interface is usable."),
    QT_TRANSLATE_NOOP("Agent", "The search on the local network is not running."),
    QT_TRANSLATE_NOOP("Agent", "The search on the local network does not work: {why}."),
    QT_TRANSLATE_NOOP("Agent", "The address {address} cannot be used for the search: {why}."),
    QT_TRANSLATE_NOOP("Agent", "This PC is connected to no network on which it could search."),
    QT_TRANSLATE_NOOP(
        "Agent", "A firewall on this PC seems to block multicast DNS (UDP port 5353)."
    ),
    QT_TRANSLATE_NOOP(
        "Agent", "Allow fleetapp in the firewall, for UDP port 5353 in both directions."
    ),
    QT_TRANSLATE_NOOP(
        "Agent",
        "Nobody else answers: no other PC runs fleetapp here, or the network keeps multicast "
        "back (guest or isolated Wi-Fi, or another subnet).",
    ),
    QT_TRANSLATE_NOOP(
        "Agent",
        "Connect both PCs to the same network, or ask who runs it to switch client isolation "
        "off for them.",
    ),
    QT_TRANSLATE_NOOP(
        "Agent",
        "Give the coordinator's address by hand (setting hub_address, or --hub HOST:PORT).",
    ),
    QT_TRANSLATE_NOOP(
        "Agent", "This PC is connected through a VPN only, and VPNs do not carry the search."
    ),
    QT_TRANSLATE_NOOP("Agent", "Connect it to the office's network as well."),
    QT_TRANSLATE_NOOP(
        "Agent", "This PC has only a self-assigned address: the network gave it none."
    ),
    QT_TRANSLATE_NOOP("Agent", "Check cable or Wi-Fi; two PCs on one cable work all the same."),
    QT_TRANSLATE_NOOP(
        "Agent", "This PC has only virtual networks (containers, virtual machines, VPNs)."
    ),
    QT_TRANSLATE_NOOP("Agent", "Connect it to the office's network."),
    QT_TRANSLATE_NOOP("Agent", "This PC is connected to no network."),
    QT_TRANSLATE_NOOP("Agent", "Check cable or Wi-Fi."),
    QT_TRANSLATE_NOOP("Agent", "This PC cannot be called by others."),
    QT_TRANSLATE_NOOP(
        "Agent", "Allow fleetapp in this PC's firewall, for incoming TCP connections."
    ),
    QT_TRANSLATE_NOOP("Agent", "This PC answers at {addresses}."),
    QT_TRANSLATE_NOOP(
        "Agent",
        "If other PCs do not reach it, allow fleetapp in its firewall, for incoming TCP "
        "connections.",
    ),
    QT_TRANSLATE_NOOP("Agent", "One is on ({names}), and the office's network is there as well."),
    QT_TRANSLATE_NOOP("Agent", "None is on."),
    QT_TRANSLATE_NOOP("Agent", "It says {shown}, which is before this version was made."),
    QT_TRANSLATE_NOOP(
        "Agent",
        "Set the date and time of this PC: certificates would look not yet valid.",
    ),
    QT_TRANSLATE_NOOP("Agent", "Not at {address}: nothing came through within two seconds."),
)

ON_THE_DESKTOP: Mapping[str, str] = {
    # remedies that name a command of the terminal -> the same for somebody at this app
    "If it was put out, 'fleetapp fleet leave' here and join with a code; if it was revoked, only "
    "an admin can let it in again.": QT_TRANSLATE_NOOP(
        "Agent",
        "If an admin has put it out, choose “Leave the fleet…” in the menu here and join again "
        "with a code; if it was shut out for good, only an admin can let it in again.",
    ),
    "Leave it first with 'fleetapp fleet leave'.": QT_TRANSLATE_NOOP(
        "Agent", "Leave it first: “Leave the fleet…” in the menu."
    ),
    "Give its address: fleetapp fleet join CODE --hub HOST:PORT.": QT_TRANSLATE_NOOP(
        "Agent", "Give its address as well as the code."
    ),
    "Check that it runs and is on the same network, or give its address (fleetapp fleet join CODE "
    "--hub HOST:PORT).": QT_TRANSLATE_NOOP(
        "Agent",
        "Check that it runs and is on the same network, or give its address as well as the code.",
    ),
    "Leave it first: fleetapp fleet leave": QT_TRANSLATE_NOOP(
        "Agent", "Leave it first: “Leave the fleet…” in the menu."
    ),
    "Leave the fleet (fleetapp fleet leave) and join again.": QT_TRANSLATE_NOOP(
        "Agent", "Leave the fleet (“Leave the fleet…” in the menu) and join again."
    ),
    "Leave it (fleetapp fleet leave) and join with a code.": QT_TRANSLATE_NOOP(
        "Agent", "Leave it (“Leave the fleet…” in the menu) and join with a code."
    ),
    "Let them leave first (fleetapp fleet leave on each).": QT_TRANSLATE_NOOP(
        "Agent", "Let them leave first: “Leave the fleet…” in the menu of each."
    ),
    "Start one with 'fleetapp serve MODEL' on the coordinator.": QT_TRANSLATE_NOOP(
        "Agent", "It is started on the coordinator: “Fleet” in the menu, tab “Models”."
    ),
    "See with 'fleetapp fleet' which PCs are there, and ask again.": QT_TRANSLATE_NOOP(
        "Agent", "Ask again; an admin sees under “Fleet” which PCs are there."
    ),
    "Ask again; 'fleetapp fleet status' shows which PCs are there.": QT_TRANSLATE_NOOP(
        "Agent", "Ask again; an admin sees under “Fleet” which PCs are there."
    ),
    "Wait a moment and ask again; 'fleetapp fleet status' shows the progress.": QT_TRANSLATE_NOOP(
        "Agent", "Wait a moment and ask again; “This PC” and “Fleet” show the progress."
    ),
    "Somebody must let a PC contribute; 'fleetapp fleet nodes' shows why each "
    "does not.": QT_TRANSLATE_NOOP(
        "Agent", "Somebody must let a PC contribute; “Fleet” shows why each does not."
    ),
    "Start it with 'fleetapp agent', or try 'fleetapp demo'.": QT_TRANSLATE_NOOP(
        "Agent", "Choose “Start the agent” in the menu."
    ),
    "Do this on the coordinator ('fleetapp fleet nodes' names it).": QT_TRANSLATE_NOOP(
        "Agent", "Do this on the coordinator; the table under “Fleet” names it."
    ),
    "'fleetapp keys list' shows the ids.": QT_TRANSLATE_NOOP(
        "Agent", "“Fleet”, tab “API keys”, lists them."
    ),
    "Run 'fleetapp model remove {model}' and get it again.": QT_TRANSLATE_NOOP(
        "Agent", "Remove {model} under “Fleet”, tab “Models”, and get it again."
    ),
    "Remove it with 'fleetapp model remove {model}' and import it again.": QT_TRANSLATE_NOOP(
        "Agent", "Remove {model} under “Fleet”, tab “Models”, and import it again."
    ),
    "Get one with 'fleetapp model get' or 'fleetapp model import'.": QT_TRANSLATE_NOOP(
        "Agent", "Get or import one under “Fleet”, tab “Models”."
    ),
    "Check the connection and the proxy settings, or import a file with "
    "'fleetapp model import'.": QT_TRANSLATE_NOOP(
        "Agent",
        "Check the connection and the proxy settings, or import a file: “Fleet”, tab “Models”.",
    ),
    "Fetch it yourself and use 'fleetapp model import'.": QT_TRANSLATE_NOOP(
        "Agent", "Fetch it yourself and import it: “Fleet”, tab “Models”."
    ),
    "Export it to an OpenVINO IR folder with optimum-intel on another machine and import that with "
    "'fleetapp model import FOLDER'.": QT_TRANSLATE_NOOP(
        "Agent",
        "Export it to an OpenVINO IR folder with optimum-intel on another machine and import that "
        "folder: “Fleet”, tab “Models”.",
    ),
}
"""A test sees to it that no command is named where the desktop app has a way of its own."""

SENTENCES: tuple[str, ...] = (
    *REASONS,
    *STATES,
    *PHASES,
    *ERRORS,
    *CHECKS,
    *REMEDIES,
    *ON_THE_DESKTOP,
)
