<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de" sourcelanguage="en">
<context>
    <name>Actions</name>
    <message>
        <source>&amp;Contribute idle AI time</source>
        <translation>Freie KI-&amp;Zeit beitragen</translation>
    </message>
    <message>
        <source>&amp;Start the agent</source>
        <translation>&amp;Agent starten</translation>
    </message>
    <message>
        <source>Open c&amp;hat</source>
        <translation>&amp;Chat öffnen</translation>
    </message>
    <message>
        <source>This &amp;PC</source>
        <translation>Dieser &amp;PC</translation>
    </message>
    <message>
        <source>&amp;Join a fleet…</source>
        <translation>Einer &amp;Flotte beitreten…</translation>
    </message>
    <message>
        <source>Create a &amp;fleet…</source>
        <translation>Flotte &amp;erstellen…</translation>
    </message>
    <message>
        <source>New join c&amp;ode…</source>
        <translation>&amp;Neuer Beitrittscode…</translation>
    </message>
    <message>
        <source>&amp;About fleetapp</source>
        <translation>&amp;Über fleetapp</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>&amp;Beenden</translation>
    </message>
    <message>
        <source>fleetapp</source>
        <translation>fleetapp</translation>
    </message>
</context>
<context>
    <name>Agent</name>
    <message>
        <source>This PC works for the fleet when it is asked to.</source>
        <translation>Dieser PC arbeitet für die Flotte, wenn er gebraucht wird.</translation>
    </message>
    <message>
        <source>Finishing running answers, then pausing.</source>
        <translation>Laufende Antworten werden beendet, danach folgt die Pause.</translation>
    </message>
    <message>
        <source>Finishing running answers, then pausing until {when}.</source>
        <translation>Laufende Antworten werden beendet, danach Pause bis {when}.</translation>
    </message>
    <message>
        <source>Contributing is switched off by {where}.</source>
        <translation>Das Beitragen ist ausgeschaltet durch {where}.</translation>
    </message>
    <message>
        <source>This PC does not contribute.</source>
        <translation>Dieser PC trägt nicht bei.</translation>
    </message>
    <message>
        <source>No device of this PC is lent to the fleet.</source>
        <translation>Kein Gerät dieses PCs ist für die Flotte freigegeben.</translation>
    </message>
    <message>
        <source>Paused until you resume.</source>
        <translation>Pause, bis Sie fortsetzen.</translation>
    </message>
    <message>
        <source>Paused until {when}.</source>
        <translation>Pause bis {when}.</translation>
    </message>
    <message>
        <source>This PC goes to sleep.</source>
        <translation>Dieser PC geht in den Ruhezustand.</translation>
    </message>
    <message>
        <source>Paused by the schedule.</source>
        <translation>Pause laut Zeitplan.</translation>
    </message>
    <message>
        <source>Paused by the schedule until {when}.</source>
        <translation>Pause laut Zeitplan bis {when}.</translation>
    </message>
    <message>
        <source>Paused on battery.</source>
        <translation>Pause im Akkubetrieb.</translation>
    </message>
    <message>
        <source>Paused while this PC saves power.</source>
        <translation>Pause, solange dieser PC Strom spart.</translation>
    </message>
    <message>
        <source>Paused below {floor}% of charge.</source>
        <translation>Pause, solange der Akku unter {floor} % geladen ist.</translation>
    </message>
    <message>
        <source>Paused on a metered network.</source>
        <translation>Pause in einem Netz mit begrenztem Datenvolumen.</translation>
    </message>
    <message>
        <source>Paused while a program fills the screen.</source>
        <translation>Pause, solange ein Programm den ganzen Bildschirm füllt.</translation>
    </message>
    <message>
        <source>Paused while an exclusive program runs.</source>
        <translation>Pause, solange ein bevorzugtes Programm läuft.</translation>
    </message>
    <message>
        <source>Paused while {program} runs.</source>
        <translation>Pause, solange {program} läuft.</translation>
    </message>
    <message>
        <source>Paused because the processor is hot.</source>
        <translation>Pause, weil der Prozessor heiß ist.</translation>
    </message>
    <message>
        <source>Paused because memory is short.</source>
        <translation>Pause, weil der Arbeitsspeicher knapp ist.</translation>
    </message>
    <message>
        <source>Paused because the disk is nearly full.</source>
        <translation>Pause, weil der Datenträger fast voll ist.</translation>
    </message>
    <message>
        <source>Paused while other programs use more than {limit}% of the processor.</source>
        <translation>Pause, solange andere Programme mehr als {limit} % des Prozessors nutzen.</translation>
    </message>
    <message>
        <source>Paused while somebody uses this PC.</source>
        <translation>Pause, solange jemand an diesem PC arbeitet.</translation>
    </message>
    <message>
        <source>This PC is changing its role in the fleet.</source>
        <translation>Dieser PC wechselt seine Rolle in der Flotte.</translation>
    </message>
    <message>
        <source>This PC belongs to no fleet yet.</source>
        <translation>Dieser PC gehört noch zu keiner Flotte.</translation>
    </message>
    <message>
        <source>This PC belongs to no fleet.</source>
        <translation>Dieser PC gehört zu keiner Flotte.</translation>
    </message>
    <message>
        <source>Holds layers {layers} of {model}.</source>
        <translation>Hält die Schichten {layers} von {model}.</translation>
    </message>
    <message>
        <source>Connected; waiting for work.</source>
        <translation>Verbunden; wartet auf Arbeit.</translation>
    </message>
    <message>
        <source>Looking for the coordinator.</source>
        <translation>Der Koordinator wird gesucht.</translation>
    </message>
    <message>
        <source>The connection to the coordinator ended.</source>
        <translation>Die Verbindung zum Koordinator ist beendet.</translation>
    </message>
    <message>
        <source>The coordinator has gone silent.</source>
        <translation>Der Koordinator meldet sich nicht mehr.</translation>
    </message>
    <message>
        <source>The coordinator is not reachable now.</source>
        <translation>Der Koordinator ist gerade nicht erreichbar.</translation>
    </message>
    <message>
        <source>The coordinator cannot be reached: {why}.</source>
        <translation>Der Koordinator ist nicht erreichbar: {why}.</translation>
    </message>
    <message>
        <source>Joining took too long.</source>
        <translation>Der Beitritt hat zu lange gedauert.</translation>
    </message>
    <message>
        <source>Try again, or ask the admin to approve.</source>
        <translation>Versuchen Sie es noch einmal, oder bitten Sie den Administrator um die Freigabe.</translation>
    </message>
    <message>
        <source>Waiting {model}.</source>
        <translation>{model} wartet.</translation>
    </message>
    <message>
        <source>Downloading {model}.</source>
        <translation>{model} wird heruntergeladen.</translation>
    </message>
    <message>
        <source>Verifying {model}.</source>
        <translation>{model} wird geprüft.</translation>
    </message>
    <message>
        <source>Compiling {model}.</source>
        <translation>{model} wird kompiliert.</translation>
    </message>
    <message>
        <source>Loading {model}.</source>
        <translation>{model} wird geladen.</translation>
    </message>
    <message>
        <source>Ready {model}.</source>
        <translation>{model} ist bereit.</translation>
    </message>
    <message>
        <source>The hub does not know this join code.</source>
        <translation>Der Koordinator kennt diesen Beitrittscode nicht.</translation>
    </message>
    <message>
        <source>This join code has expired.</source>
        <translation>Dieser Beitrittscode ist abgelaufen.</translation>
    </message>
    <message>
        <source>This join code was revoked.</source>
        <translation>Dieser Beitrittscode wurde zurückgezogen.</translation>
    </message>
    <message>
        <source>This join code has been used as often as it may be.</source>
        <translation>Dieser Beitrittscode wurde so oft benutzt, wie er benutzt werden darf.</translation>
    </message>
    <message>
        <source>Too many wrong join codes came from this address.</source>
        <translation>Von dieser Adresse kamen zu viele falsche Beitrittscodes.</translation>
    </message>
    <message>
        <source>This is far too long to be a join code.</source>
        <translation>Für einen Beitrittscode ist das viel zu lang.</translation>
    </message>
    <message>
        <source>The join code is mistyped: its check character does not match.</source>
        <translation>Der Beitrittscode enthält einen Tippfehler: Das Prüfzeichen passt nicht.</translation>
    </message>
    <message>
        <source>The join code is mistyped.</source>
        <translation>Der Beitrittscode enthält einen Tippfehler.</translation>
    </message>
    <message>
        <source>A join code begins with {prefix}-, and this does not.</source>
        <translation>Ein Beitrittscode beginnt mit {prefix}-, dieser nicht.</translation>
    </message>
    <message>
        <source>A join code never contains {letter}.</source>
        <translation>Ein Beitrittscode enthält niemals {letter}.</translation>
    </message>
    <message>
        <source>The join code has {found} characters after {prefix}-, but {needed} are needed.</source>
        <translation>Der Beitrittscode hat nach {prefix}- {found} Zeichen, nötig sind {needed}.</translation>
    </message>
    <message>
        <source>The admin declined to let this PC into the fleet.</source>
        <translation>Der Administrator hat den Beitritt dieses PCs abgelehnt.</translation>
    </message>
    <message>
        <source>Ask the admin for another join code.</source>
        <translation>Bitten Sie den Administrator um einen anderen Beitrittscode.</translation>
    </message>
    <message>
        <source>The hub that answered belongs to another fleet than the join code.</source>
        <translation>Der Koordinator, der geantwortet hat, gehört zu einer anderen Flotte als der Beitrittscode.</translation>
    </message>
    <message>
        <source>Check the hub&apos;s address, or ask the admin for a code of that fleet.</source>
        <translation>Prüfen Sie die Adresse des Koordinators, oder bitten Sie den Administrator um einen Code dieser Flotte.</translation>
    </message>
    <message>
        <source>&apos;{text}&apos; is not an address of the form host:port.</source>
        <translation>„{text}“ ist keine Adresse der Form Host:Port.</translation>
    </message>
    <message>
        <source>Give the coordinator&apos;s address with its control port, e.g. 192.0.2.7:8485.</source>
        <translation>Geben Sie die Adresse des Koordinators mit seinem Steuerport an, zum Beispiel 192.0.2.7:8485.</translation>
    </message>
    <message>
        <source>A fleet&apos;s name has 1 to 64 printable characters.</source>
        <translation>Der Name einer Flotte hat 1 bis 64 druckbare Zeichen.</translation>
    </message>
    <message>
        <source>This PC already belongs to the fleet &apos;{fleet}&apos;.</source>
        <translation>Dieser PC gehört schon zur Flotte „{fleet}“.</translation>
    </message>
    <message>
        <source>Leave it first with &apos;fleetapp fleet leave&apos;.</source>
        <translation>Verlassen Sie sie zuerst mit „fleetapp fleet leave“.</translation>
    </message>
    <message>
        <source>This PC is not the coordinator of its fleet.</source>
        <translation>Dieser PC ist nicht der Koordinator seiner Flotte.</translation>
    </message>
    <message>
        <source>Do this on the coordinator.</source>
        <translation>Tun Sie das am Koordinator.</translation>
    </message>
    <message>
        <source>Pausing is switched off by {where}.</source>
        <translation>Pausen sind ausgeschaltet durch {where}.</translation>
    </message>
    <message>
        <source>The setting {name} is managed by {where} and cannot be changed.</source>
        <translation>Die Einstellung {name} wird durch {where} verwaltet und kann nicht geändert werden.</translation>
    </message>
    <message>
        <source>Port {port} on {host} is used by another program.</source>
        <translation>Port {port} auf {host} wird von einem anderen Programm benutzt.</translation>
    </message>
    <message>
        <source>Stop that program, or choose another port with the setting {setting} (0 takes any free one).</source>
        <translation>Beenden Sie dieses Programm, oder wählen Sie mit der Einstellung {setting} einen anderen Port (0 nimmt irgendeinen freien).</translation>
    </message>
    <message>
        <source>No model is being served.</source>
        <translation>Es wird kein Modell angeboten.</translation>
    </message>
    <message>
        <source>Start one with &apos;fleetapp serve MODEL&apos; on the coordinator.</source>
        <translation>Starten Sie eines mit „fleetapp serve MODELL“ am Koordinator.</translation>
    </message>
    <message>
        <source>There is no model &apos;{model}&apos; here.</source>
        <translation>Ein Modell „{model}“ gibt es hier nicht.</translation>
    </message>
    <message>
        <source>The coordinator is shutting down.</source>
        <translation>Der Koordinator wird gerade beendet.</translation>
    </message>
    <message>
        <source>Ask again when it is back, or another PC coordinates.</source>
        <translation>Fragen Sie noch einmal, sobald er zurück ist oder ein anderer PC koordiniert.</translation>
    </message>
    <message>
        <source>This PC belongs to no fleet, so nothing can answer.</source>
        <translation>Dieser PC gehört zu keiner Flotte, deshalb kann niemand antworten.</translation>
    </message>
    <message>
        <source>Check that it runs; this PC reconnects by itself.</source>
        <translation>Prüfen Sie, ob er läuft; dieser PC verbindet sich von selbst wieder.</translation>
    </message>
    <message>
        <source>{count} requests are waiting already.</source>
        <translation>Es warten schon {count} Anfragen.</translation>
    </message>
    <message>
        <source>Try again later, or add PCs to the fleet.</source>
        <translation>Versuchen Sie es später noch einmal, oder nehmen Sie mehr PCs in die Flotte auf.</translation>
    </message>
    <message>
        <source>The shard did not load in time and was stopped.</source>
        <translation>Der Modellteil wurde nicht rechtzeitig geladen und deshalb gestoppt.</translation>
    </message>
    <message>
        <source>{name} left the fleet while it held a stage.</source>
        <translation>{name} hat die Flotte verlassen und hielt noch eine Stufe.</translation>
    </message>
    <message>
        <source>{name} stopped contributing.</source>
        <translation>{name} trägt nicht mehr bei.</translation>
    </message>
    <message>
        <source>See with &apos;fleetapp fleet&apos; which PCs are there, and ask again.</source>
        <translation>Sehen Sie mit „fleetapp fleet“ nach, welche PCs da sind, und fragen Sie noch einmal.</translation>
    </message>
    <message>
        <source>The coordinator has gone while it was answering.</source>
        <translation>Der Koordinator ist während der Antwort ausgefallen.</translation>
    </message>
    <message>
        <source>Ask again; this PC reconnects by itself.</source>
        <translation>Fragen Sie noch einmal; dieser PC verbindet sich von selbst wieder.</translation>
    </message>
    <message>
        <source>{what} needs {needed} on the disk of {path}, which has {free} free.</source>
        <translation>{what}: nötig sind {needed} auf dem Datenträger von {path}, frei sind {free}.</translation>
    </message>
    <message>
        <source>Try again in a moment.</source>
        <translation>Versuchen Sie es gleich noch einmal.</translation>
    </message>
    <message>
        <source>Shorten the prompt or start a new conversation.</source>
        <translation>Kürzen Sie die Frage, oder beginnen Sie einen neuen Chat.</translation>
    </message>
    <message>
        <source>Send JSON with the header &apos;Content-Type: application/json&apos;.</source>
        <translation>Senden Sie JSON mit der Kopfzeile „Content-Type: application/json“.</translation>
    </message>
    <message>
        <source>Send the header &apos;Authorization: Bearer &lt;key&gt;&apos; with a key of this fleet.</source>
        <translation>Senden Sie die Kopfzeile „Authorization: Bearer &lt;Schlüssel&gt;“ mit einem Schlüssel dieser Flotte.</translation>
    </message>
    <message>
        <source>Ask the administrator if it has to change.</source>
        <translation>Wenden Sie sich an Ihren Administrator, wenn es geändert werden muss.</translation>
    </message>
    <message>
        <source>Give a GGUF file or a folder that holds openvino_model.xml.</source>
        <translation>Geben Sie eine GGUF-Datei oder einen Ordner mit openvino_model.xml an.</translation>
    </message>
    <message>
        <source>Get the file again; nothing was imported.</source>
        <translation>Besorgen Sie die Datei noch einmal; es wurde nichts importiert.</translation>
    </message>
    <message>
        <source>Free some space or choose another folder; what was fetched so far is kept.</source>
        <translation>Schaffen Sie Platz, oder wählen Sie einen anderen Ordner; das bisher Geladene bleibt erhalten.</translation>
    </message>
    <message>
        <source>Choose a folder that can be written with --state or FLEETAPP_HOME.</source>
        <translation>Wählen Sie mit --state oder FLEETAPP_HOME einen Ordner, in den geschrieben werden kann.</translation>
    </message>
    <message>
        <source>The damaged part is dropped and fetched again.</source>
        <translation>Der beschädigte Teil wird verworfen und noch einmal geladen.</translation>
    </message>
    <message>
        <source>Check it character by character or ask the admin for a new one.</source>
        <translation>Prüfen Sie ihn Zeichen für Zeichen, oder bitten Sie den Administrator um einen neuen.</translation>
    </message>
    <message>
        <source>Ask the admin for a new one.</source>
        <translation>Bitten Sie den Administrator um einen neuen.</translation>
    </message>
    <message>
        <source>Wait a minute, then try again with the code as the admin shows it.</source>
        <translation>Warten Sie eine Minute, und versuchen Sie es dann mit genau dem Code, den der Administrator anzeigt.</translation>
    </message>
    <message>
        <source>Join the fleet with a join code first.</source>
        <translation>Treten Sie der Flotte zuerst mit einem Beitrittscode bei.</translation>
    </message>
    <message>
        <source>Nothing to do: it is given an identity of its own.</source>
        <translation>Es ist nichts zu tun: Er bekommt eine eigene Identität.</translation>
    </message>
    <message>
        <source>Update the older of the two.</source>
        <translation>Aktualisieren Sie den älteren der beiden.</translation>
    </message>
    <message>
        <source>Ask again; the fleet repairs itself within seconds.</source>
        <translation>Fragen Sie noch einmal; die Flotte stellt sich binnen Sekunden wieder her.</translation>
    </message>
    <message>
        <source>Ask again; the runner is started anew.</source>
        <translation>Fragen Sie noch einmal; der Rechenprozess wird neu gestartet.</translation>
    </message>
    <message>
        <source>The fleet goes on without this PC; it comes back by itself.</source>
        <translation>Die Flotte macht ohne diesen PC weiter; er kommt von selbst zurück.</translation>
    </message>
    <message>
        <source>Start it with &apos;fleetapp agent&apos;, or try &apos;fleetapp demo&apos;.</source>
        <translation>Starten Sie ihn mit „fleetapp agent“, oder probieren Sie „fleetapp demo“.</translation>
    </message>
    <message>
        <source>tomorrow {clock}</source>
        <translation>morgen {clock}</translation>
    </message>
    <message>
        <source>{day} {clock}</source>
        <translation>{day} {clock}</translation>
    </message>
</context>
<context>
    <name>AgentKeeper</name>
    <message>
        <source>it ended unexpectedly</source>
        <translation>er wurde unerwartet beendet</translation>
    </message>
    <message>
        <source>The agent could not be kept running: {why}.</source>
        <translation>Der Agent ließ sich nicht am Laufen halten: {why}.</translation>
    </message>
    <message>
        <source>it ended right after its start with exit code {code}</source>
        <translation>er endete gleich nach dem Start mit dem Code {code}</translation>
    </message>
    <message numerus="yes">
        <source>it did not answer within %n seconds</source>
        <translation>
            <numerusform>er antwortete nicht innerhalb von %n Sekunde</numerusform>
            <numerusform>er antwortete nicht innerhalb von %n Sekunden</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>AgentSession</name>
    <message>
        <source>Try again from the menu.</source>
        <translation>Versuchen Sie es über das Menü noch einmal.</translation>
    </message>
</context>
<context>
    <name>AnswerStream</name>
    <message numerus="yes">
        <source>The agent has said nothing for %n seconds.</source>
        <translation>
            <numerusform>Der Agent hat sich seit %n Sekunde nicht gemeldet.</numerusform>
            <numerusform>Der Agent hat sich seit %n Sekunden nicht gemeldet.</numerusform>
        </translation>
    </message>
    <message>
        <source>Try again.</source>
        <translation>Versuchen Sie es noch einmal.</translation>
    </message>
</context>
<context>
    <name>App</name>
    <message>
        <source>The folder {folder} cannot be made: {why}.</source>
        <translation>Der Ordner {folder} kann nicht angelegt werden: {why}.</translation>
    </message>
    <message>
        <source>fleetapp cannot start</source>
        <translation>fleetapp kann nicht starten</translation>
    </message>
</context>
<context>
    <name>AssignmentRow</name>
    <message>
        <source>Progress of {shard}</source>
        <translation>Fortschritt von {shard}</translation>
    </message>
</context>
<context>
    <name>Call</name>
    <message>
        <source>The request was cancelled.</source>
        <translation>Die Anfrage wurde abgebrochen.</translation>
    </message>
    <message numerus="yes">
        <source>The agent did not answer within %n seconds.</source>
        <translation>
            <numerusform>Der Agent hat innerhalb von %n Sekunde nicht geantwortet.</numerusform>
            <numerusform>Der Agent hat innerhalb von %n Sekunden nicht geantwortet.</numerusform>
        </translation>
    </message>
    <message>
        <source>The agent&apos;s answer makes no sense: {problem}.</source>
        <translation>Die Antwort des Agenten ergibt keinen Sinn: {problem}.</translation>
    </message>
</context>
<context>
    <name>Chat</name>
    <message>
        <source>The fleet&apos;s answer makes no sense: {why}.</source>
        <translation>Die Antwort der Flotte ergibt keinen Sinn: {why}.</translation>
    </message>
    <message>
        <source>The connection to the agent ended before the answer was complete.</source>
        <translation>Die Verbindung zum Agenten endete, bevor die Antwort vollständig war.</translation>
    </message>
    <message>
        <source>Try again.</source>
        <translation>Versuchen Sie es noch einmal.</translation>
    </message>
    <message>
        <source>System</source>
        <translation>System</translation>
    </message>
    <message>
        <source>Served by {pcs}</source>
        <translation>Beantwortet von {pcs}</translation>
    </message>
    <message>
        <source>The fleet serves no model yet.</source>
        <translation>Die Flotte bietet noch kein Modell an.</translation>
    </message>
    <message>
        <source>An administrator starts one; then try again.</source>
        <translation>Ein Administrator startet eines; versuchen Sie es dann noch einmal.</translation>
    </message>
    <message>
        <source>[Picture, not loaded: {words}]</source>
        <translation>[Bild, nicht geladen: {words}]</translation>
    </message>
    <message>
        <source>&amp;Keep</source>
        <translation>&amp;Behalten</translation>
    </message>
    <message>
        <source>The chat history {file} cannot be used: {why}.</source>
        <translation>Der Chatverlauf {file} kann nicht benutzt werden: {why}.</translation>
    </message>
    <message>
        <source>Chats work, but are not kept.</source>
        <translation>Chats funktionieren, werden aber nicht aufbewahrt.</translation>
    </message>
    <message>
        <source>The chat history was written by a newer fleetapp (version {version} of the file; this one knows {known}).</source>
        <translation>Der Chatverlauf wurde von einem neueren fleetapp geschrieben (Version {version} der Datei; dieses kennt {known}).</translation>
    </message>
    <message>
        <source>Update fleetapp. Until then chats work, but are not kept.</source>
        <translation>Aktualisieren Sie fleetapp. Bis dahin funktionieren Chats, werden aber nicht aufbewahrt.</translation>
    </message>
    <message>
        <source>The history could not be copied to {file}: {why}.</source>
        <translation>Der Verlauf konnte nicht nach {file} kopiert werden: {why}.</translation>
    </message>
    <message>
        <source>The chat history {file} can no longer be written: {why}.</source>
        <translation>In den Chatverlauf {file} kann nicht mehr geschrieben werden: {why}.</translation>
    </message>
    <message>
        <source>Chats work, but are not kept until fleetapp is started again.</source>
        <translation>Chats funktionieren, werden aber erst nach einem Neustart von fleetapp wieder aufbewahrt.</translation>
    </message>
    <message>
        <source>{n} tokens/s</source>
        <translation>{n} Tokens/s</translation>
    </message>
    <message>
        <source>first token after {s} s</source>
        <translation>erstes Token nach {s} s</translation>
    </message>
    <message>
        <source>served by {pcs}</source>
        <translation>beantwortet von {pcs}</translation>
    </message>
    <message>
        <source>The fleet replaced a PC; the answer went on after {s} s.</source>
        <translation>Die Flotte hat einen PC ersetzt; nach {s} s ging die Antwort weiter.</translation>
    </message>
    <message>
        <source>The answer paused and went on after {s} s.</source>
        <translation>Die Antwort stockte und ging nach {s} s weiter.</translation>
    </message>
    <message>
        <source>Cut at the chosen length, or because no more fits.</source>
        <translation>Bei der gewählten Länge abgeschnitten, oder weil nicht mehr hineinpasst.</translation>
    </message>
    <message>
        <source>Stopped.</source>
        <translation>Angehalten.</translation>
    </message>
    <message>
        <source>fleetapp ended while this was being written.</source>
        <translation>fleetapp wurde beendet, während dies geschrieben wurde.</translation>
    </message>
    <message>
        <source>The answer has paused; waiting for the fleet ({s} s).</source>
        <translation>Die Antwort stockt; es wird auf die Flotte gewartet ({s} s).</translation>
    </message>
    <message>
        <source>Sent to the fleet…</source>
        <translation>An die Flotte gesendet…</translation>
    </message>
    <message>
        <source>Waiting: number {n} in the queue.</source>
        <translation>Wartet: Platz {n} in der Schlange.</translation>
    </message>
    <message>
        <source>The fleet is reading…</source>
        <translation>Die Flotte liest…</translation>
    </message>
    <message>
        <source>Writing…</source>
        <translation>Die Antwort wird geschrieben…</translation>
    </message>
    <message>
        <source>You</source>
        <translation>Sie</translation>
    </message>
    <message>
        <source>Assistant</source>
        <translation>Assistent</translation>
    </message>
    <message>
        <source>Editing: sending replaces this question.</source>
        <translation>Bearbeiten: Senden ersetzt diese Frage.</translation>
    </message>
    <message>
        <source>Editing: sending replaces this question and removes its answer.</source>
        <translation>Bearbeiten: Senden ersetzt diese Frage und entfernt ihre Antwort.</translation>
    </message>
</context>
<context>
    <name>ChatMenu</name>
    <message>
        <source>Menu</source>
        <translation>Menü</translation>
    </message>
    <message>
        <source>&amp;New chat</source>
        <translation>&amp;Neuer Chat</translation>
    </message>
    <message>
        <source>&amp;Rename</source>
        <translation>&amp;Umbenennen</translation>
    </message>
    <message>
        <source>Export as &amp;Markdown…</source>
        <translation>Als &amp;Markdown exportieren…</translation>
    </message>
    <message>
        <source>Export as &amp;JSON…</source>
        <translation>Als &amp;JSON exportieren…</translation>
    </message>
    <message>
        <source>&amp;Delete…</source>
        <translation>&amp;Löschen…</translation>
    </message>
    <message>
        <source>&amp;Find in this chat</source>
        <translation>In diesem Chat &amp;suchen</translation>
    </message>
    <message>
        <source>New &amp;window</source>
        <translation>Neues &amp;Fenster</translation>
    </message>
    <message>
        <source>&amp;Copy the whole history to a file…</source>
        <translation>Gesamten &amp;Verlauf in eine Datei kopieren…</translation>
    </message>
    <message>
        <source>Delete &amp;all chats…</source>
        <translation>&amp;Alle Chats löschen…</translation>
    </message>
</context>
<context>
    <name>ChatWindow</name>
    <message>
        <source>New chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message>
        <source>{title} - Chat</source>
        <translation>{title} - Chat</translation>
    </message>
    <message>
        <source>The answer is complete.</source>
        <translation>Die Antwort ist vollständig.</translation>
    </message>
    <message>
        <source>The answer was copied.</source>
        <translation>Die Antwort wurde kopiert.</translation>
    </message>
    <message>
        <source>Delete this chat?</source>
        <translation>Diesen Chat löschen?</translation>
    </message>
    <message>
        <source>&amp;Delete</source>
        <translation>&amp;Löschen</translation>
    </message>
    <message>
        <source>Delete all chats?</source>
        <translation>Alle Chats löschen?</translation>
    </message>
    <message numerus="yes">
        <source>All %n chats on this PC are deleted for good.</source>
        <translation>
            <numerusform>%n Chat auf diesem PC wird endgültig gelöscht.</numerusform>
            <numerusform>Alle %n Chats auf diesem PC werden endgültig gelöscht.</numerusform>
        </translation>
    </message>
    <message>
        <source>&amp;Delete all</source>
        <translation>&amp;Alle löschen</translation>
    </message>
    <message>
        <source>&amp;Options</source>
        <translation>&amp;Optionen</translation>
    </message>
    <message>
        <source>System prompt, temperature, length (Ctrl+,)</source>
        <translation>System-Prompt, Temperatur, Länge (Strg+,)</translation>
    </message>
    <message>
        <source>Options of this chat</source>
        <translation>Optionen dieses Chats</translation>
    </message>
    <message>
        <source>The chat history was damaged. It was put aside as {file}, and a new one was begun.</source>
        <translation>Der Chatverlauf war beschädigt. Er wurde als {file} beiseitegelegt und ein neuer begonnen.</translation>
    </message>
</context>
<context>
    <name>CodeBlock</name>
    <message>
        <source>Copy code</source>
        <translation>Code kopieren</translation>
    </message>
    <message>
        <source>code</source>
        <translation>Code</translation>
    </message>
    <message>
        <source>Code, {language}</source>
        <translation>Code, {language}</translation>
    </message>
    <message>
        <source>text</source>
        <translation>Text</translation>
    </message>
    <message>
        <source>Copy code: {language}</source>
        <translation>Code kopieren: {language}</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>Kopiert</translation>
    </message>
</context>
<context>
    <name>CodeDialog</name>
    <message>
        <source>Enter this code on each PC that should join:</source>
        <translation>Geben Sie diesen Code auf jedem PC ein, der beitreten soll:</translation>
    </message>
    <message>
        <source>Join code</source>
        <translation>Beitrittscode</translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>Keep it as it is</source>
        <translation>So lassen</translation>
    </message>
    <message>
        <source>Your question</source>
        <translation>Ihre Frage</translation>
    </message>
    <message>
        <source>Ask the fleet. Enter sends, Shift+Enter breaks the line.</source>
        <translation>Fragen Sie die Flotte. Eingabe sendet, Umschalt+Eingabe bricht die Zeile um.</translation>
    </message>
    <message>
        <source>Very long lines of the pasted text were broken.</source>
        <translation>Sehr lange Zeilen des eingefügten Textes wurden umbrochen.</translation>
    </message>
    <message>
        <source>&amp;Send</source>
        <translation>&amp;Senden</translation>
    </message>
    <message>
        <source>S&amp;top</source>
        <translation>Sto&amp;pp</translation>
    </message>
    <message>
        <source>Stop this answer (Esc)</source>
        <translation>Diese Antwort anhalten (Esc)</translation>
    </message>
</context>
<context>
    <name>ConversationDelegate</name>
    <message>
        <source>Title of the chat</source>
        <translation>Titel des Chats</translation>
    </message>
</context>
<context>
    <name>CopyField</name>
    <message>
        <source>Co&amp;py</source>
        <translation>&amp;Kopieren</translation>
    </message>
    <message>
        <source>Copy: {what}</source>
        <translation>Kopieren: {what}</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>Kopiert</translation>
    </message>
</context>
<context>
    <name>Counts</name>
    <message numerus="yes">
        <source>about %n s left</source>
        <translation>
            <numerusform>noch etwa %n s</numerusform>
            <numerusform>noch etwa %n s</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>about %n min left</source>
        <translation>
            <numerusform>noch etwa %n min</numerusform>
            <numerusform>noch etwa %n min</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>about %n h left</source>
        <translation>
            <numerusform>noch etwa %n h</numerusform>
            <numerusform>noch etwa %n h</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n hours</source>
        <translation>
            <numerusform>%n Stunde</numerusform>
            <numerusform>%n Stunden</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n PCs</source>
        <translation>
            <numerusform>%n PC</numerusform>
            <numerusform>%n PCs</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%Ln tokens</source>
        <translation>
            <numerusform>%Ln Token</numerusform>
            <numerusform>%Ln Tokens</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Editing: sending replaces this question and removes the %n messages after it.</source>
        <translation>
            <numerusform>Bearbeiten: Senden ersetzt diese Frage und entfernt die %n Nachricht danach.</numerusform>
            <numerusform>Bearbeiten: Senden ersetzt diese Frage und entfernt die %n Nachrichten danach.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>CreateDialog</name>
    <message>
        <source>Create a fleet</source>
        <translation>Flotte erstellen</translation>
    </message>
    <message>
        <source>This PC becomes the coordinator: it admits other PCs, plans their work, and must be on for the fleet to answer.</source>
        <translation>Dieser PC wird zum Koordinator: Er nimmt andere PCs auf, plant ihre Arbeit und muss eingeschaltet sein, damit die Flotte antwortet.</translation>
    </message>
    <message>
        <source>for example: Office</source>
        <translation>zum Beispiel: Büro</translation>
    </message>
    <message>
        <source>&amp;Name of the fleet</source>
        <translation>&amp;Name der Flotte</translation>
    </message>
    <message>
        <source>C&amp;reate</source>
        <translation>&amp;Erstellen</translation>
    </message>
    <message>
        <source>Making the fleet&apos;s keys…</source>
        <translation>Die Schlüssel der Flotte werden erzeugt…</translation>
    </message>
    <message>
        <source>It is shown this once; more codes: menu, New join code.</source>
        <translation>Er wird nur dieses eine Mal angezeigt; weitere Codes gibt es im Menü unter „Neuer Beitrittscode“.</translation>
    </message>
</context>
<context>
    <name>Desktop</name>
    <message>
        <source>This PC is working for the fleet ({models}).</source>
        <translation>Dieser PC arbeitet gerade für die Flotte ({models}).</translation>
    </message>
    <message>
        <source>If you quit now, answers that are being written may break off, and other PCs have to take over.</source>
        <translation>Wenn Sie jetzt beenden, können laufende Antworten abbrechen, und andere PCs müssen übernehmen.</translation>
    </message>
    <message>
        <source>An answer to you is being written.</source>
        <translation>Gerade wird eine Antwort für Sie geschrieben.</translation>
    </message>
    <message>
        <source>If you quit now it ends here; what has come of it is kept.</source>
        <translation>Wenn Sie jetzt beenden, endet sie hier; was schon da ist, bleibt erhalten.</translation>
    </message>
    <message>
        <source>Quit fleetapp?</source>
        <translation>fleetapp beenden?</translation>
    </message>
    <message>
        <source>&amp;Quit now</source>
        <translation>&amp;Jetzt beenden</translation>
    </message>
    <message>
        <source>&amp;Keep running</source>
        <translation>&amp;Weiterlaufen lassen</translation>
    </message>
    <message>
        <source>The agent is still running</source>
        <translation>Der Agent läuft noch</translation>
    </message>
    <message>
        <source>The agent was asked to end and has not (process {pid}).</source>
        <translation>Der Agent sollte sich beenden, läuft aber noch (Prozess {pid}).</translation>
    </message>
    <message>
        <source>It can be ended in the task manager.</source>
        <translation>Sie können ihn im Task-Manager beenden.</translation>
    </message>
    <message>
        <source>That did not work</source>
        <translation>Das hat nicht geklappt</translation>
    </message>
    <message>
        <source>About fleetapp</source>
        <translation>Über fleetapp</translation>
    </message>
    <message>
        <source>fleetapp {version}</source>
        <translation>fleetapp {version}</translation>
    </message>
    <message>
        <source>An office&apos;s own laptops serving large language models together.</source>
        <translation>Die Laptops eines Büros betreiben gemeinsam große Sprachmodelle.</translation>
    </message>
    <message>
        <source>Apache-2.0 licence. Made with Qt and PySide6 (LGPL 3).</source>
        <translation>Lizenz: Apache 2.0. Erstellt mit Qt und PySide6 (LGPL 3).</translation>
    </message>
    <message>
        <source>Agent {version}</source>
        <translation>Agent {version}</translation>
    </message>
    <message>
        <source>fleetapp is still running</source>
        <translation>fleetapp läuft weiter</translation>
    </message>
    <message>
        <source>Its icon stays here; Quit in its menu ends it.</source>
        <translation>Das Symbol bleibt hier; „Beenden“ in seinem Menü beendet das Programm.</translation>
    </message>
</context>
<context>
    <name>EmptyPage</name>
    <message>
        <source>What would you like to know?</source>
        <translation>Was möchten Sie wissen?</translation>
    </message>
    <message>
        <source>The PCs of the fleet compute the answer together. The history of your chats is stored on this PC only.</source>
        <translation>Die PCs der Flotte berechnen die Antwort gemeinsam. Der Verlauf Ihrer Chats wird nur auf diesem PC gespeichert.</translation>
    </message>
</context>
<context>
    <name>Errors</name>
    <message>
        <source>The agent on this PC cannot be reached: {why}.</source>
        <translation>Der Agent auf diesem PC ist nicht erreichbar: {why}.</translation>
    </message>
    <message>
        <source>The agent refused with status {status} and gave no reason.</source>
        <translation>Der Agent hat mit Status {status} abgelehnt und keinen Grund genannt.</translation>
    </message>
    <message>
        <source>The agent&apos;s files in {folder} cannot be read: {why}.</source>
        <translation>Die Dateien des Agenten in {folder} sind nicht lesbar: {why}.</translation>
    </message>
    <message>
        <source>The agent on this PC is not running.</source>
        <translation>Der Agent auf diesem PC läuft nicht.</translation>
    </message>
    <message>
        <source>Start it from the menu.</source>
        <translation>Starten Sie ihn über das Menü.</translation>
    </message>
    <message>
        <source>The agent sent an event that is larger than allowed.</source>
        <translation>Der Agent hat eine Meldung gesendet, die größer ist als erlaubt.</translation>
    </message>
</context>
<context>
    <name>FindBar</name>
    <message>
        <source>Find in this chat</source>
        <translation>In diesem Chat suchen</translation>
    </message>
    <message>
        <source>Previous message with these words</source>
        <translation>Vorige Nachricht mit diesen Wörtern</translation>
    </message>
    <message>
        <source>Next message with these words</source>
        <translation>Nächste Nachricht mit diesen Wörtern</translation>
    </message>
    <message>
        <source>Close the search</source>
        <translation>Suche schließen</translation>
    </message>
    <message>
        <source>Not found</source>
        <translation>Nicht gefunden</translation>
    </message>
    <message>
        <source>Message {n} of {all}</source>
        <translation>Nachricht {n} von {all}</translation>
    </message>
</context>
<context>
    <name>InviteDialog</name>
    <message>
        <source>New join code</source>
        <translation>Neuer Beitrittscode</translation>
    </message>
    <message>
        <source>Making a code…</source>
        <translation>Ein Code wird erzeugt…</translation>
    </message>
    <message>
        <source>Valid for {hours} and {pcs}. It is shown this once.</source>
        <translation>Gültig für {hours} und {pcs}. Er wird nur dieses eine Mal angezeigt.</translation>
    </message>
</context>
<context>
    <name>JoinDialog</name>
    <message>
        <source>Join a fleet</source>
        <translation>Einer Flotte beitreten</translation>
    </message>
    <message>
        <source>A PC that contributes computes on other people&apos;s text, and the first stage sees the words themselves. Nothing of it is written down.</source>
        <translation>Ein PC, der beiträgt, rechnet mit Texten anderer, und die erste Stufe sieht deren Wörter selbst. Nichts davon wird gespeichert.</translation>
    </message>
    <message>
        <source>Join &amp;code from your administrator</source>
        <translation>Beitritts&amp;code von Ihrem Administrator</translation>
    </message>
    <message>
        <source>only if it is not found by itself</source>
        <translation>nur, falls er nicht von selbst gefunden wird</translation>
    </message>
    <message>
        <source>Coordinator &amp;address (host:port)</source>
        <translation>A&amp;dresse des Koordinators (Host:Port)</translation>
    </message>
    <message>
        <source>&amp;Join</source>
        <translation>&amp;Beitreten</translation>
    </message>
    <message>
        <source>Looking for the fleet and introducing this PC…</source>
        <translation>Die Flotte wird gesucht und dieser PC vorgestellt…</translation>
    </message>
    <message>
        <source>The fleet has accepted this PC.</source>
        <translation>Die Flotte hat diesen PC aufgenommen.</translation>
    </message>
    <message>
        <source>This PC is now part of “{name}”.</source>
        <translation>Dieser PC gehört jetzt zu „{name}“.</translation>
    </message>
</context>
<context>
    <name>LinkDialog</name>
    <message>
        <source>Open this link?</source>
        <translation>Diesen Link öffnen?</translation>
    </message>
    <message>
        <source>Not opened</source>
        <translation>Nicht geöffnet</translation>
    </message>
    <message>
        <source>This link in the answer leads to:</source>
        <translation>Dieser Link in der Antwort führt zu:</translation>
    </message>
    <message>
        <source>fleetapp opens only web addresses (http and https). This link in the answer is something else:</source>
        <translation>fleetapp öffnet nur Webadressen (http und https). Dieser Link in der Antwort ist etwas anderes:</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>Adresse</translation>
    </message>
    <message>
        <source>&amp;Open in browser</source>
        <translation>Im Browser &amp;öffnen</translation>
    </message>
    <message>
        <source>&amp;Copy address</source>
        <translation>Adresse &amp;kopieren</translation>
    </message>
    <message>
        <source>Do &amp;not open</source>
        <translation>&amp;Nicht öffnen</translation>
    </message>
</context>
<context>
    <name>MessageView</name>
    <message>
        <source>{who}, {when}</source>
        <translation>{who}, {when}</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy this message</source>
        <translation>Diese Nachricht kopieren</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>Bearbeiten</translation>
    </message>
    <message>
        <source>Edit this question and send it again</source>
        <translation>Diese Frage bearbeiten und noch einmal senden</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>Kopiert</translation>
    </message>
</context>
<context>
    <name>ModelPicker</name>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>{model} (not ready)</source>
        <translation>{model} (nicht bereit)</translation>
    </message>
    <message>
        <source>{model} (not served now)</source>
        <translation>{model} (zurzeit nicht angeboten)</translation>
    </message>
    <message>
        <source>No model is served yet</source>
        <translation>Noch wird kein Modell angeboten</translation>
    </message>
    <message>
        <source>Served by {pcs}; up to {n} tokens of question and answer together.</source>
        <translation>Beantwortet von {pcs}; Frage und Antwort zusammen bis zu {n} Tokens.</translation>
    </message>
</context>
<context>
    <name>OptionsPanel</name>
    <message>
        <source>Options of this chat</source>
        <translation>Optionen dieses Chats</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>System-Prompt</translation>
    </message>
    <message>
        <source>What the model should always keep in mind</source>
        <translation>Was das Modell immer beachten soll</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>Temperatur</translation>
    </message>
    <message>
        <source>0 always takes the likeliest word; higher values vary more.</source>
        <translation>0 nimmt immer das wahrscheinlichste Wort; höhere Werte bringen mehr Abwechslung.</translation>
    </message>
    <message>
        <source>As long as fits</source>
        <translation>So lang wie möglich</translation>
    </message>
    <message>
        <source> tokens</source>
        <translation> Tokens</translation>
    </message>
    <message>
        <source>Longest answer</source>
        <translation>Längste Antwort</translation>
    </message>
    <message>
        <source>S&amp;ystem prompt</source>
        <translation>S&amp;ystem-Prompt</translation>
    </message>
    <message>
        <source>Te&amp;mperature</source>
        <translation>Te&amp;mperatur</translation>
    </message>
    <message>
        <source>&amp;Longest answer</source>
        <translation>&amp;Längste Antwort</translation>
    </message>
</context>
<context>
    <name>Saving</name>
    <message>
        <source>{file} could not be written: {why}.</source>
        <translation>{file} konnte nicht geschrieben werden: {why}.</translation>
    </message>
    <message>
        <source>Choose another folder.</source>
        <translation>Wählen Sie einen anderen Ordner.</translation>
    </message>
    <message>
        <source>Save as</source>
        <translation>Speichern unter</translation>
    </message>
</context>
<context>
    <name>Sidebar</name>
    <message>
        <source>&amp;New chat</source>
        <translation>&amp;Neuer Chat</translation>
    </message>
    <message>
        <source>Ctrl+N</source>
        <translation>Strg+N</translation>
    </message>
    <message>
        <source>Menu</source>
        <translation>Menü</translation>
    </message>
    <message>
        <source>Search chats (Ctrl+K)</source>
        <translation>Suchen (Strg+K)</translation>
    </message>
    <message>
        <source>Search chats</source>
        <translation>Chats durchsuchen</translation>
    </message>
    <message>
        <source>Chats</source>
        <translation>Chats</translation>
    </message>
    <message>
        <source>No chat has these words.</source>
        <translation>Kein Chat enthält diese Wörter.</translation>
    </message>
    <message>
        <source>No chats yet.</source>
        <translation>Noch keine Chats.</translation>
    </message>
</context>
<context>
    <name>SingleInstance</name>
    <message>
        <source>The state folder of fleetapp cannot be written.</source>
        <translation>In den Datenordner von fleetapp kann nicht geschrieben werden.</translation>
    </message>
    <message>
        <source>Check who owns it and whether the disk is full.</source>
        <translation>Prüfen Sie, wem er gehört und ob der Datenträger voll ist.</translation>
    </message>
    <message>
        <source>fleetapp is already running here but does not answer.</source>
        <translation>fleetapp läuft hier schon, antwortet aber nicht.</translation>
    </message>
    <message>
        <source>End it in the task manager and start it again.</source>
        <translation>Beenden Sie es im Task-Manager und starten Sie es neu.</translation>
    </message>
</context>
<context>
    <name>StatusStream</name>
    <message>
        <source>This desktop app does not understand the agent: {why}.</source>
        <translation>Dieses Programm versteht den Agenten nicht: {why}.</translation>
    </message>
    <message>
        <source>Quit and start it again, so that both have the same version.</source>
        <translation>Beenden Sie es und starten Sie es neu, damit beide dieselbe Version haben.</translation>
    </message>
    <message>
        <source>The agent on this PC has ended.</source>
        <translation>Der Agent auf diesem PC wurde beendet.</translation>
    </message>
</context>
<context>
    <name>ThisPcWindow</name>
    <message>
        <source>This PC</source>
        <translation>Dieser PC</translation>
    </message>
    <message>
        <source>&amp;Start the agent</source>
        <translation>&amp;Agent starten</translation>
    </message>
    <message>
        <source>Coordinator: {hub}</source>
        <translation>Koordinator: {hub}</translation>
    </message>
    <message>
        <source>member</source>
        <translation>Mitglied</translation>
    </message>
    <message>
        <source>coordinator of the fleet</source>
        <translation>Koordinator der Flotte</translation>
    </message>
    <message>
        <source>administrator</source>
        <translation>Administrator</translation>
    </message>
    <message>
        <source>Menu</source>
        <translation>Menü</translation>
    </message>
    <message>
        <source>Fleet</source>
        <translation>Flotte</translation>
    </message>
    <message>
        <source>&amp;Contribute idle AI time</source>
        <translation>Freie KI-&amp;Zeit beitragen</translation>
    </message>
    <message>
        <source>This PC is in no fleet</source>
        <translation>Dieser PC gehört zu keiner Flotte</translation>
    </message>
    <message>
        <source>The PCs of a fleet run large AI models together. Join the one of your office with a code from its administrator, or create a new one.</source>
        <translation>Die PCs einer Flotte betreiben gemeinsam große KI-Modelle. Treten Sie der Ihres Büros mit einem Code vom Administrator bei, oder erstellen Sie eine neue.</translation>
    </message>
    <message>
        <source>&amp;Join a fleet…</source>
        <translation>Einer &amp;Flotte beitreten…</translation>
    </message>
    <message>
        <source>C&amp;reate a fleet…</source>
        <translation>Flotte &amp;erstellen…</translation>
    </message>
    <message>
        <source>Models on this PC</source>
        <translation>Modelle auf diesem PC</translation>
    </message>
    <message>
        <source>Nothing is assigned to this PC.</source>
        <translation>Diesem PC ist nichts zugewiesen.</translation>
    </message>
    <message>
        <source>For programs on this PC</source>
        <translation>Für Programme auf diesem PC</translation>
    </message>
    <message>
        <source>API address</source>
        <translation>API-Adresse</translation>
    </message>
    <message>
        <source>Address of the OpenAI-compatible API; an API key is needed.</source>
        <translation>Adresse der OpenAI-kompatiblen API; ein API-Schlüssel ist nötig.</translation>
    </message>
</context>
<context>
    <name>ThreadView</name>
    <message>
        <source>Conversation</source>
        <translation>Unterhaltung</translation>
    </message>
    <message>
        <source>↓ Ne&amp;west</source>
        <translation>↓ N&amp;eueste</translation>
    </message>
    <message>
        <source>Go to the newest message</source>
        <translation>Zur neuesten Nachricht</translation>
    </message>
</context>
<context>
    <name>Words</name>
    <message>
        <source>Starting</source>
        <translation>Startet</translation>
    </message>
    <message>
        <source>Preparing {percent}%</source>
        <translation>Bereitet vor: {percent} %</translation>
    </message>
    <message>
        <source>Not in a fleet</source>
        <translation>In keiner Flotte</translation>
    </message>
    <message>
        <source>Connecting</source>
        <translation>Verbindet</translation>
    </message>
    <message>
        <source>Ready</source>
        <translation>Bereit</translation>
    </message>
    <message>
        <source>Contributing</source>
        <translation>Trägt bei</translation>
    </message>
    <message>
        <source>Preparing</source>
        <translation>Bereitet vor</translation>
    </message>
    <message>
        <source>Needs attention</source>
        <translation>Braucht Aufmerksamkeit</translation>
    </message>
    <message>
        <source>Agent not running</source>
        <translation>Agent läuft nicht</translation>
    </message>
    <message>
        <source>The agent on this PC is starting.</source>
        <translation>Der Agent auf diesem PC startet gerade.</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>Wartet</translation>
    </message>
    <message>
        <source>Downloading</source>
        <translation>Wird heruntergeladen</translation>
    </message>
    <message>
        <source>Verifying</source>
        <translation>Wird geprüft</translation>
    </message>
    <message>
        <source>Compiling</source>
        <translation>Wird kompiliert</translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>Wird geladen</translation>
    </message>
    <message>
        <source>In use</source>
        <translation>In Gebrauch</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>Fehlgeschlagen</translation>
    </message>
    <message>
        <source>Stage {stage} of {stages} · layers {layers}</source>
        <translation>Stufe {stage} von {stages} · Schichten {layers}</translation>
    </message>
    <message>
        <source>{done} of {total}</source>
        <translation>{done} von {total}</translation>
    </message>
    <message>
        <source>{size} already here</source>
        <translation>{size} schon vorhanden</translation>
    </message>
    <message>
        <source>a few seconds left</source>
        <translation>noch ein paar Sekunden</translation>
    </message>
</context>
<context>
    <name>_Footer</name>
    <message>
        <source>&amp;Retry</source>
        <translation>E&amp;rneut versuchen</translation>
    </message>
    <message>
        <source>Retry: ask again</source>
        <translation>Erneut versuchen: noch einmal fragen</translation>
    </message>
    <message>
        <source>Regenerate</source>
        <translation>Neu erzeugen</translation>
    </message>
    <message>
        <source>Replace this answer by a new one</source>
        <translation>Diese Antwort durch eine neue ersetzen</translation>
    </message>
</context>
</TS>
