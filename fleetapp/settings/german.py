"""The settings' words in German, each under its English; a test looks for gaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

GERMAN: Final[Mapping[str, str]] = {
    # sections
    "Contributing": "Beitragen",
    "Battery and network": "Akku und Netz",
    "Schedule": "Zeitplan",
    "Limits": "Grenzen",
    "Devices": "Geräte",
    "This PC in the fleet": "Dieser PC in der Flotte",
    "Ports and sharing": "Ports und Weitergabe",
    "Coordinator": "Koordinator",
    "Computing": "Rechnen",
    # contributing
    "Contribute idle AI time": "Freie KI-Zeit beitragen",
    "Let the fleet use this PC when it is idle.":
        "Die Flotte darf diesen PC benutzen, wenn er nichts zu tun hat.",
    "When": "Wann",
    "When the fleet may use this PC.": "Wann die Flotte diesen PC benutzen darf.",
    "While nobody uses this PC": "Solange niemand diesen PC benutzt",
    "Also while somebody does": "Auch während jemand ihn benutzt",
    "Counts as idle after": "Gilt als frei nach",
    "Minutes without a key or a mouse until this PC counts as idle.":
        "Minuten ohne Taste oder Maus, bis dieser PC als frei gilt.",
    "at once": "sofort",
    "Pause in full screen": "Bei Vollbild pausieren",
    "Pause while a program fills the screen or a presentation runs.":
        "Pause, solange ein Programm den Bildschirm füllt oder eine Präsentation läuft.",
    "Pause while these run": "Pause, solange diese laufen",
    "Programs during which this PC pauses, separated by commas.":
        "Programme, während derer dieser PC pausiert, durch Kommas getrennt.",
    "none": "keine",
    "The user may pause": "Benutzer dürfen pausieren",
    "Whether people at this PC may pause it; for policies.":
        "Ob die Menschen an diesem PC pausieren dürfen; für Richtlinien.",
    "Ask at the first start": "Beim ersten Start fragen",
    "Whether the desktop app asks at its first start what this PC is for; for policies.":
        "Ob das Programm beim ersten Start fragt, wofür dieser PC da ist; für Richtlinien.",
    "Give memory back after": "Speicher freigeben nach",
    "Seconds that shards stay in memory after this PC has paused.":
        "Sekunden, die Modellteile nach Beginn einer Pause im Speicher bleiben.",
    # battery and network
    "Contribute on battery": "Im Akkubetrieb beitragen",
    "Contribute on battery and in power-saving mode too.":
        "Auch im Akkubetrieb und im Energiesparmodus beitragen.",
    "Least charge": "Geringste Ladung",
    "Percent of charge below which this PC never contributes on battery.":
        "Prozent Ladung, unter denen dieser PC im Akkubetrieb nie beiträgt.",
    "Contribute on metered networks": "In getakteten Netzen beitragen",
    "Contribute over a metered network too.": "Auch über ein getaktetes Netz beitragen.",
    # schedule
    "Days": "Tage",
    "Days on which this PC may contribute.": "Tage, an denen dieser PC beitragen darf.",
    "every day": "jeden Tag",
    "Hours": "Stunden",
    "Hours in which it may. A range that ends before it begins runs over midnight.":
        "Stunden, in denen er darf. Ein Zeitraum, der vor seinem Beginn endet, geht über "
        "Mitternacht.",
    "all day": "den ganzen Tag",
    # limits
    "Pause when others need the processor": "Pause, wenn andere den Prozessor brauchen",
    "Percent of the processor that other programs may use before this PC pauses; 100 never pauses.":
        "Prozent des Prozessors, die andere Programme nutzen dürfen, bevor dieser PC pausiert; "
        "bei 100 nie.",
    "Pause when hot": "Pause bei Hitze",
    "Degrees Celsius of the processor at which this PC pauses.":
        "Grad Celsius des Prozessors, bei denen dieser PC pausiert.",
    "never": "nie",
    "Memory for the fleet": "Speicher für die Flotte",
    "Memory that the fleet may use on this PC at most.":
        "Speicher, den die Flotte auf diesem PC höchstens nutzen darf.",
    "what is free": "was frei ist",
    "Memory that stays free": "Speicher, der frei bleibt",
    "With less free memory this PC pauses.": "Bei weniger freiem Speicher pausiert dieser PC.",
    "no matter": "gleichgültig",
    "Disk for the fleet": "Plattenplatz für die Flotte",
    "Disk that shards may use on this PC at most.":
        "Plattenplatz, den Modellteile auf diesem PC höchstens nutzen dürfen.",
    "Disk that stays free": "Plattenplatz, der frei bleibt",
    "With less free disk this PC pauses.": "Bei weniger freiem Plattenplatz pausiert dieser PC.",
    "Download limit": "Grenze beim Herunterladen",
    "Rate at which this PC fetches shards at most.":
        "Rate, mit der dieser PC Modellteile höchstens holt.",
    "no limit": "keine Grenze",
    "Upload limit": "Grenze beim Hochladen",
    "Rate at which this PC sends shards to other members at most.":
        "Rate, mit der dieser PC Modellteile höchstens an andere Mitglieder sendet.",
    # devices
    "Lend the processor": "Prozessor verleihen",
    "Let the fleet compute on the CPU.": "Die Flotte darf auf der CPU rechnen.",
    "Lend the graphics processor": "Grafikprozessor verleihen",
    "Let the fleet compute on the GPU.": "Die Flotte darf auf der GPU rechnen.",
    "Lend the neural processor": "Neuralprozessor verleihen",
    "Let the fleet compute on the NPU.": "Die Flotte darf auf der NPU rechnen.",
    "Neural processor while in use": "Neuralprozessor während der Arbeit",
    "Lend the neural processor also while somebody uses this PC.":
        "Den Neuralprozessor auch verleihen, während jemand diesen PC benutzt.",
    "Look only for": "Nur suchen nach",
    "Kinds of devices to look for (CPU, GPU, NPU), for PCs whose drivers make trouble.":
        "Arten von Geräten, nach denen gesucht wird (CPU, GPU, NPU), für PCs, deren Treiber "
        "Ärger machen.",
    "all there are": "alle, die da sind",
    # this PC in the fleet
    "Name of this PC": "Name dieses PCs",
    "Name under which the fleet shows this PC from its next connection on.":
        "Name, unter dem die Flotte diesen PC ab der nächsten Verbindung zeigt.",
    "made from its device id": "aus seiner Gerätekennung gebildet",
    "Use the host name": "Rechnernamen verwenden",
    "Show this PC's host name to the fleet if it has no name of its own.":
        "Der Flotte den Rechnernamen zeigen, wenn dieser PC keinen eigenen Namen hat.",
    "Coordinator's address": "Adresse des Koordinators",
    "host:port of the coordinator, where it is not found by itself.":
        "host:port des Koordinators, wenn er nicht von selbst gefunden wird.",
    "found by multicast DNS": "über Multicast-DNS gefunden",
    "Look for the fleet on": "Flotte suchen auf",
    "Own addresses on which to look for the fleet, separated by commas.":
        "Eigene Adressen, auf denen die Flotte gesucht wird, durch Kommas getrennt.",
    "all usable ones": "alle brauchbaren",
    # ports and sharing
    "Share shards": "Modellteile weitergeben",
    "Give shards to other members while this PC contributes.":
        "Modellteile an andere Mitglieder geben, solange dieser PC beiträgt.",
    "Port for sharing": "Port für die Weitergabe",
    "Port on which this PC gives shards to other members.":
        "Port, auf dem dieser PC Modellteile an andere Mitglieder gibt.",
    "any free one": "ein beliebiger freier",
    "Port of a stage": "Port einer Stufe",
    "Port on which a stage listens for its neighbour; further stages take those after it.":
        "Port, auf dem eine Stufe auf ihre Nachbarin wartet; weitere Stufen nehmen die folgenden.",
    "Loopback port": "Port für eigene Programme",
    "Port of the loopback API for this PC's own programs.":
        "Port der Schnittstelle für die eigenen Programme dieses PCs.",
    # coordinator
    "API address": "Adresse der API",
    "Address on which the fleet's API listens on the coordinator.":
        "Adresse, auf der die API der Flotte auf dem Koordinator erreichbar ist.",
    "API port": "Port der API",
    "Port of the fleet's API.": "Port der API der Flotte.",
    "Port for members": "Port für Mitglieder",
    "Port on which the coordinator listens for members.":
        "Port, auf dem der Koordinator für Mitglieder erreichbar ist.",
    "Model library": "Modellbibliothek",
    "Folder of the model library.": "Ordner der Modellbibliothek.",
    "inside the state folder": "im Zustandsordner",
    # computing
    "Precision": "Genauigkeit",
    "Exact gives the same tokens however a model is split; fast is faster. Holds for models that "
    "are started from now on.":
        "„Genau“ ergibt dieselben Tokens, wie auch immer ein Modell geteilt ist; „schnell“ ist "
        "schneller. Gilt für Modelle, die ab jetzt gestartet werden.",
    "Fast": "Schnell",
    "Exact": "Genau",
    "Threads": "Threads",
    "Processor threads a stage may use.": "Prozessor-Threads, die eine Stufe nutzen darf.",
    "automatic": "automatisch",
    "Longest conversation": "Längste Unterhaltung",
    "Longest prompt and answer together.": "Frage und Antwort zusammen höchstens.",
    "what the model allows": "was das Modell erlaubt",
    "tokens": "Tokens",
    "Memory of running requests": "Speicher laufender Anfragen",
    "Memory for keys and values of running requests.":
        "Speicher für Schlüssel und Werte laufender Anfragen.",
    "Memory of idle conversations": "Speicher ruhender Unterhaltungen",
    "Memory for keys and values of idle conversations.":
        "Speicher für Schlüssel und Werte ruhender Unterhaltungen.",
    "Disk of idle conversations": "Plattenplatz ruhender Unterhaltungen",
    "Disk for the idle conversations that memory has no room for.":
        "Plattenplatz für ruhende Unterhaltungen, die nicht in den Speicher passen.",
    # units
    "min": "min",
    "s": "s",
    "%": "%",
    "°C": "°C",
    "MiB": "MiB",
    "Mbit/s": "Mbit/s",
}  # fmt: skip
