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
        <source>&amp;Resume</source>
        <translation>Fo&amp;rtsetzen</translation>
    </message>
    <message>
        <source>&amp;Finish, then pause</source>
        <translation>Fertig werden, &amp;dann Pause</translation>
    </message>
    <message>
        <source>Open c&amp;hat</source>
        <translation>&amp;Chat öffnen</translation>
    </message>
    <message>
        <source>&amp;This PC</source>
        <translation>D&amp;ieser PC</translation>
    </message>
    <message>
        <source>F&amp;leet</source>
        <translation>&amp;Flotte</translation>
    </message>
    <message>
        <source>Set &amp;up again…</source>
        <translation>Noch einmal einric&amp;hten…</translation>
    </message>
    <message>
        <source>Create a fl&amp;eet…</source>
        <translation>Flotte &amp;erstellen…</translation>
    </message>
    <message>
        <source>Lea&amp;ve the fleet…</source>
        <translation>Flotte &amp;verlassen…</translation>
    </message>
    <message>
        <source>&amp;Pause</source>
        <translation>&amp;Pause</translation>
    </message>
    <message>
        <source>For &amp;30 minutes</source>
        <translation>Für &amp;30 Minuten</translation>
    </message>
    <message>
        <source>For &amp;1 hour</source>
        <translation>Für &amp;1 Stunde</translation>
    </message>
    <message>
        <source>For &amp;4 hours</source>
        <translation>Für &amp;4 Stunden</translation>
    </message>
    <message>
        <source>Until &amp;tomorrow</source>
        <translation>Bis &amp;morgen</translation>
    </message>
    <message>
        <source>Until I &amp;resume</source>
        <translation>Bis ich &amp;fortsetze</translation>
    </message>
    <message>
        <source>&amp;Join a fleet…</source>
        <translation>Einer Flotte bei&amp;treten…</translation>
    </message>
    <message>
        <source>New join c&amp;ode…</source>
        <translation>&amp;Neuer Beitrittscode…</translation>
    </message>
    <message>
        <source>Settin&amp;gs…</source>
        <translation>Ein&amp;stellungen…</translation>
    </message>
    <message>
        <source>E&amp;xport diagnostics…</source>
        <translation>Diagnose e&amp;xportieren…</translation>
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
        <source>Holds layers {layers} of {model} ready for the fleet.</source>
        <translation>Hält die Schichten {layers} von {model} für die Flotte bereit.</translation>
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
        <source>The coordinator does not count this PC as a member any more.</source>
        <translation>Der Koordinator zählt diesen PC nicht mehr zu seinen Mitgliedern.</translation>
    </message>
    <message>
        <source>If an admin has put it out, choose “Leave the fleet…” in the menu here and join again with a code; if it was shut out for good, only an admin can let it in again.</source>
        <translation>Hat ein Administrator ihn entfernt, wählen Sie hier im Menü „Flotte verlassen…“ und treten Sie mit einem Code neu bei; wurde er auf Dauer ausgesperrt, kann nur ein Administrator ihn wieder aufnehmen.</translation>
    </message>
    <message>
        <source>Leave it first: “Leave the fleet…” in the menu.</source>
        <translation>Verlassen Sie sie zuerst: „Flotte verlassen…“ im Menü.</translation>
    </message>
    <message>
        <source>Give its address as well as the code.</source>
        <translation>Geben Sie außer dem Code auch seine Adresse an.</translation>
    </message>
    <message>
        <source>Check that it runs and is on the same network, or give its address as well as the code.</source>
        <translation>Prüfen Sie, ob er läuft und im selben Netz ist, oder geben Sie außer dem Code auch seine Adresse an.</translation>
    </message>
    <message>
        <source>Leave the fleet (“Leave the fleet…” in the menu) and join again.</source>
        <translation>Verlassen Sie die Flotte („Flotte verlassen…“ im Menü) und treten Sie neu bei.</translation>
    </message>
    <message>
        <source>Leave it (“Leave the fleet…” in the menu) and join with a code.</source>
        <translation>Verlassen Sie sie („Flotte verlassen…“ im Menü) und treten Sie mit einem Code bei.</translation>
    </message>
    <message>
        <source>Let them leave first: “Leave the fleet…” in the menu of each.</source>
        <translation>Lassen Sie diese zuerst austreten: „Flotte verlassen…“ in ihrem Menü.</translation>
    </message>
    <message>
        <source>It is started on the coordinator: “Fleet” in the menu, tab “Models”.</source>
        <translation>Es wird am Koordinator gestartet: „Flotte“ im Menü, Reiter „Modelle“.</translation>
    </message>
    <message>
        <source>Ask again; an admin sees under “Fleet” which PCs are there.</source>
        <translation>Fragen Sie noch einmal; ein Administrator sieht unter „Flotte“, welche PCs da sind.</translation>
    </message>
    <message>
        <source>Wait a moment and ask again; “This PC” and “Fleet” show the progress.</source>
        <translation>Warten Sie einen Moment und fragen Sie noch einmal; „Dieser PC“ und „Flotte“ zeigen, wie weit es ist.</translation>
    </message>
    <message>
        <source>Somebody must let a PC contribute; “Fleet” shows why each does not.</source>
        <translation>Jemand muss einen PC mitarbeiten lassen; „Flotte“ zeigt, warum jeder es nicht tut.</translation>
    </message>
    <message>
        <source>Choose “Start the agent” in the menu.</source>
        <translation>Wählen Sie „Agent starten“ im Menü.</translation>
    </message>
    <message>
        <source>Do this on the coordinator; the table under “Fleet” names it.</source>
        <translation>Tun Sie das am Koordinator; die Tabelle unter „Flotte“ nennt ihn.</translation>
    </message>
    <message>
        <source>“Fleet”, tab “API keys”, lists them.</source>
        <translation>Unter „Flotte“, Reiter „API-Schlüssel“, sind sie aufgeführt.</translation>
    </message>
    <message>
        <source>Remove {model} under “Fleet”, tab “Models”, and get it again.</source>
        <translation>Entfernen Sie {model} unter „Flotte“, Reiter „Modelle“, und holen Sie es neu.</translation>
    </message>
    <message>
        <source>Remove {model} under “Fleet”, tab “Models”, and import it again.</source>
        <translation>Entfernen Sie {model} unter „Flotte“, Reiter „Modelle“, und importieren Sie es neu.</translation>
    </message>
    <message>
        <source>Get or import one under “Fleet”, tab “Models”.</source>
        <translation>Holen oder importieren Sie eines unter „Flotte“, Reiter „Modelle“.</translation>
    </message>
    <message>
        <source>Check the connection and the proxy settings, or import a file: “Fleet”, tab “Models”.</source>
        <translation>Prüfen Sie die Verbindung und die Proxy-Einstellungen, oder importieren Sie eine Datei: „Flotte“, Reiter „Modelle“.</translation>
    </message>
    <message>
        <source>Fetch it yourself and import it: “Fleet”, tab “Models”.</source>
        <translation>Laden Sie es selbst herunter und importieren Sie es: „Flotte“, Reiter „Modelle“.</translation>
    </message>
    <message>
        <source>Export it to an OpenVINO IR folder with optimum-intel on another machine and import that folder: “Fleet”, tab “Models”.</source>
        <translation>Exportieren Sie es mit optimum-intel auf einem anderen Rechner in einen Ordner mit OpenVINO IR und importieren Sie diesen: „Flotte“, Reiter „Modelle“.</translation>
    </message>
    <message>
        <source>Waiting for the admin to approve this PC; its id is {device}.</source>
        <translation>Wartet auf die Freigabe durch den Administrator; die Kennung dieses PCs ist {device}.</translation>
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
        <source>Another PC of this fleet is called {name} ({device}).</source>
        <translation>Ein anderer PC dieser Flotte heißt {name} ({device}).</translation>
    </message>
    <message>
        <source>Choose a name that no other PC has.</source>
        <translation>Wählen Sie einen Namen, den kein anderer PC hat.</translation>
    </message>
    <message>
        <source>This PC already belongs to the fleet &apos;{fleet}&apos;.</source>
        <translation>Dieser PC gehört schon zur Flotte „{fleet}“.</translation>
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
        <source>The setting {name} cannot be {folder}: {why}.</source>
        <translation>Die Einstellung {name} kann nicht {folder} sein: {why}.</translation>
    </message>
    <message>
        <source>It was not changed.</source>
        <translation>Sie wurde nicht geändert.</translation>
    </message>
    <message>
        <source>It was not changed. Choose a folder that you can write to.</source>
        <translation>Sie wurde nicht geändert. Wählen Sie einen Ordner, in den Sie schreiben dürfen.</translation>
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
        <source>The coordinator has gone while it was answering.</source>
        <translation>Der Koordinator ist während der Antwort ausgefallen.</translation>
    </message>
    <message>
        <source>This PC was removed from the fleet while it was being answered.</source>
        <translation>Dieser PC wurde aus der Flotte entfernt, während er eine Antwort bekam.</translation>
    </message>
    <message>
        <source>Ask again; this PC reconnects by itself.</source>
        <translation>Fragen Sie noch einmal; dieser PC verbindet sich von selbst wieder.</translation>
    </message>
    <message>
        <source>There is no room left to write {path}.</source>
        <translation>Es ist kein Platz mehr, um {path} zu schreiben.</translation>
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
        <source>Start it again; a download goes on where it stopped.</source>
        <translation>Starten Sie es noch einmal; ein Download geht dort weiter, wo er aufgehört hat.</translation>
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
        <source>mDNS finds {peers} other PCs, {coordinators} of them coordinators.</source>
        <translation>mDNS findet andere PCs: {peers}, davon Koordinatoren: {coordinators}.</translation>
    </message>
    <message>
        <source>mDNS is possible on {addresses}.</source>
        <translation>mDNS ist möglich auf {addresses}.</translation>
    </message>
    <message>
        <source>No network interface is usable.</source>
        <translation>Kein Netzwerkanschluss ist benutzbar.</translation>
    </message>
    <message>
        <source>The search on the local network is not running.</source>
        <translation>Die Suche im lokalen Netz läuft nicht.</translation>
    </message>
    <message>
        <source>The search on the local network does not work: {why}.</source>
        <translation>Die Suche im lokalen Netz funktioniert nicht: {why}.</translation>
    </message>
    <message>
        <source>The address {address} cannot be used for the search: {why}.</source>
        <translation>Die Adresse {address} kann für die Suche nicht benutzt werden: {why}.</translation>
    </message>
    <message>
        <source>This PC is connected to no network on which it could search.</source>
        <translation>Dieser PC ist mit keinem Netz verbunden, in dem er suchen könnte.</translation>
    </message>
    <message>
        <source>A firewall on this PC seems to block multicast DNS (UDP port 5353).</source>
        <translation>Eine Firewall auf diesem PC scheint Multicast-DNS zu blockieren (UDP-Port 5353).</translation>
    </message>
    <message>
        <source>Allow fleetapp in the firewall, for UDP port 5353 in both directions.</source>
        <translation>Erlauben Sie fleetapp in der Firewall, für UDP-Port 5353 in beiden Richtungen.</translation>
    </message>
    <message>
        <source>Nobody else answers: no other PC runs fleetapp here, or the network keeps multicast back (guest or isolated Wi-Fi, or another subnet).</source>
        <translation>Niemand sonst antwortet: Auf keinem anderen PC hier läuft fleetapp, oder das Netz hält Multicast zurück (Gäste-WLAN, isoliertes WLAN oder ein anderes Subnetz).</translation>
    </message>
    <message>
        <source>Connect both PCs to the same network, or ask who runs it to switch client isolation off for them.</source>
        <translation>Verbinden Sie beide PCs mit demselben Netz, oder bitten Sie den Betreiber, die Isolierung der Geräte für sie abzuschalten.</translation>
    </message>
    <message>
        <source>Give the coordinator&apos;s address by hand (setting hub_address, or --hub HOST:PORT).</source>
        <translation>Geben Sie die Adresse des Koordinators von Hand an (Einstellung hub_address, oder --hub HOST:PORT).</translation>
    </message>
    <message>
        <source>This PC is connected through a VPN only, and VPNs do not carry the search.</source>
        <translation>Dieser PC ist nur über ein VPN verbunden, und VPNs übertragen die Suche nicht.</translation>
    </message>
    <message>
        <source>Connect it to the office&apos;s network as well.</source>
        <translation>Verbinden Sie ihn auch mit dem Netz des Büros.</translation>
    </message>
    <message>
        <source>This PC has only a self-assigned address: the network gave it none.</source>
        <translation>Dieser PC hat nur eine selbst vergebene Adresse: Das Netz hat ihm keine gegeben.</translation>
    </message>
    <message>
        <source>Check cable or Wi-Fi; two PCs on one cable work all the same.</source>
        <translation>Prüfen Sie Kabel oder WLAN; zwei PCs an einem Kabel funktionieren trotzdem.</translation>
    </message>
    <message>
        <source>This PC has only virtual networks (containers, virtual machines, VPNs).</source>
        <translation>Dieser PC hat nur virtuelle Netze (Container, virtuelle Maschinen, VPNs).</translation>
    </message>
    <message>
        <source>Connect it to the office&apos;s network.</source>
        <translation>Verbinden Sie ihn mit dem Netz des Büros.</translation>
    </message>
    <message>
        <source>This PC is connected to no network.</source>
        <translation>Dieser PC ist mit keinem Netz verbunden.</translation>
    </message>
    <message>
        <source>Check cable or Wi-Fi.</source>
        <translation>Prüfen Sie Kabel oder WLAN.</translation>
    </message>
    <message>
        <source>This PC cannot be called by others.</source>
        <translation>Dieser PC ist für andere nicht erreichbar.</translation>
    </message>
    <message>
        <source>Allow fleetapp in this PC&apos;s firewall, for incoming TCP connections.</source>
        <translation>Erlauben Sie fleetapp in der Firewall dieses PCs, für eingehende TCP-Verbindungen.</translation>
    </message>
    <message>
        <source>This PC answers at {addresses}.</source>
        <translation>Dieser PC antwortet unter {addresses}.</translation>
    </message>
    <message>
        <source>If other PCs do not reach it, allow fleetapp in its firewall, for incoming TCP connections.</source>
        <translation>Wenn andere PCs ihn nicht erreichen, erlauben Sie fleetapp in seiner Firewall, für eingehende TCP-Verbindungen.</translation>
    </message>
    <message>
        <source>One is on ({names}), and the office&apos;s network is there as well.</source>
        <translation>Eines ist eingeschaltet ({names}), und das Netz des Büros ist auch da.</translation>
    </message>
    <message>
        <source>None is on.</source>
        <translation>Keines ist eingeschaltet.</translation>
    </message>
    <message>
        <source>It says {shown}, which is before this version was made.</source>
        <translation>Sie zeigt {shown}; das liegt vor der Entstehung dieser Version.</translation>
    </message>
    <message>
        <source>Set the date and time of this PC: certificates would look not yet valid.</source>
        <translation>Stellen Sie Datum und Uhrzeit dieses PCs: Zertifikate sähen noch nicht gültig aus.</translation>
    </message>
    <message>
        <source>Not at {address}: nothing came through within two seconds.</source>
        <translation>Nicht unter {address}: Innerhalb von zwei Sekunden kam nichts an.</translation>
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
    <name>AttentionList</name>
    <message>
        <source>What needs attention</source>
        <translation>Was Aufmerksamkeit braucht</translation>
    </message>
    <message>
        <source>Needs attention ({n})</source>
        <translation>Braucht Aufmerksamkeit ({n})</translation>
    </message>
</context>
<context>
    <name>AuditPage</name>
    <message>
        <source>Filter: who, what, which PC…</source>
        <translation>Filter: wer, was, welcher PC…</translation>
    </message>
    <message>
        <source>Filter the audit log</source>
        <translation>Das Protokoll filtern</translation>
    </message>
    <message>
        <source>&amp;Older</source>
        <translation>&amp;Ältere</translation>
    </message>
    <message>
        <source>Load older entries too</source>
        <translation>Auch ältere Einträge laden</translation>
    </message>
    <message>
        <source>&amp;Reload</source>
        <translation>&amp;Neu laden</translation>
    </message>
    <message>
        <source>Audit log</source>
        <translation>Protokoll</translation>
    </message>
    <message>
        <source>No.</source>
        <translation>Nr.</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>Zeit</translation>
    </message>
    <message>
        <source>Who</source>
        <translation>Wer</translation>
    </message>
    <message>
        <source>What</source>
        <translation>Was</translation>
    </message>
    <message>
        <source>Details</source>
        <translation>Einzelheiten</translation>
    </message>
    <message>
        <source>C&amp;heck the log</source>
        <translation>Protokoll p&amp;rüfen</translation>
    </message>
    <message>
        <source>Follow the chain of hashes from the first line on</source>
        <translation>Der Kette der Hashes von der ersten Zeile an folgen</translation>
    </message>
    <message>
        <source>hash noted earlier (optional)</source>
        <translation>früher notierter Hash (freiwillig)</translation>
    </message>
    <message>
        <source>Hash noted earlier</source>
        <translation>Früher notierter Hash</translation>
    </message>
    <message>
        <source>Hash of the newest line</source>
        <translation>Hash der neuesten Zeile</translation>
    </message>
    <message>
        <source>Only admins see the audit log.</source>
        <translation>Nur Administratoren sehen das Protokoll.</translation>
    </message>
    <message>
        <source>Nothing is written down yet.</source>
        <translation>Noch ist nichts aufgeschrieben.</translation>
    </message>
    <message>
        <source>{n} of the newest {all} entries</source>
        <translation>{n} der neuesten {all} Einträge</translation>
    </message>
    <message>
        <source>the coordinator&apos;s user</source>
        <translation>Nutzer am Koordinator</translation>
    </message>
    <message>
        <source>A hash has only digits and the letters a to f.</source>
        <translation>Ein Hash hat nur Ziffern und die Buchstaben a bis f.</translation>
    </message>
    <message>
        <source>The log was changed: {problems}</source>
        <translation>Das Protokoll wurde verändert: {problems}</translation>
    </message>
    <message>
        <source>All {n} entries follow from one another. Note this hash elsewhere: only then a cut-off end can be noticed later.</source>
        <translation>Alle {n} Einträge folgen auseinander. Notieren Sie diesen Hash an anderer Stelle: Nur dann fällt später auf, wenn das Ende abgeschnitten wurde.</translation>
    </message>
</context>
<context>
    <name>Boxes</name>
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
        <source>Leave the fleet?</source>
        <translation>Flotte verlassen?</translation>
    </message>
    <message>
        <source>This PC will belong to the fleet “{fleet}” no longer.</source>
        <translation>Dieser PC gehört dann nicht mehr zur Flotte „{fleet}“.</translation>
    </message>
    <message>
        <source>It ends its work for the fleet. Coming back takes a new join code.</source>
        <translation>Er beendet seine Arbeit für die Flotte. Für die Rückkehr braucht es einen neuen Beitrittscode.</translation>
    </message>
    <message>
        <source>&amp;Leave</source>
        <translation>&amp;Verlassen</translation>
    </message>
    <message>
        <source>&amp;Stay</source>
        <translation>&amp;Bleiben</translation>
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
    <name>ChainCard</name>
    <message>
        <source>{model} · {precision}</source>
        <translation>{model} · {precision}</translation>
    </message>
    <message>
        <source>{tokens} tokens/s, {step} for a token, {wire} of it between PCs</source>
        <translation>{tokens} Tokens/s, {step} je Token, davon {wire} zwischen den PCs</translation>
    </message>
    <message>
        <source>{running} answers being written, {waiting} waiting</source>
        <translation>Antworten in Arbeit: {running}, wartend: {waiting}</translation>
    </message>
    <message>
        <source>{node} (layers {layers})</source>
        <translation>{node} (Schichten {layers})</translation>
    </message>
    <message>
        <source>Held ready, to take over when a PC leaves: {pcs}</source>
        <translation>Bereitgehalten, falls ein PC geht: {pcs}</translation>
    </message>
</context>
<context>
    <name>Chart</name>
    <message>
        <source>{title} of the last five minutes, now {value}</source>
        <translation>{title} der letzten fünf Minuten, jetzt {value}</translation>
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
        <source>System prompt, temperature, length (Ctrl+.)</source>
        <translation>System-Prompt, Temperatur, Länge (Strg+.)</translation>
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
    <name>CodesPage</name>
    <message>
        <source>New join code</source>
        <translation>Neuer Beitrittscode</translation>
    </message>
    <message>
        <source>Join code</source>
        <translation>Beitrittscode</translation>
    </message>
    <message>
        <source>Join codes</source>
        <translation>Beitrittscodes</translation>
    </message>
    <message>
        <source>Id</source>
        <translation>ID</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Status</translation>
    </message>
    <message>
        <source>Uses left</source>
        <translation>Noch nutzbar</translation>
    </message>
    <message>
        <source>Approval</source>
        <translation>Aufnahme</translation>
    </message>
    <message>
        <source>Made</source>
        <translation>Erzeugt</translation>
    </message>
    <message>
        <source>Expires</source>
        <translation>Läuft ab</translation>
    </message>
    <message>
        <source> h</source>
        <translation> h</translation>
    </message>
    <message>
        <source>Approve each PC &amp;by hand</source>
        <translation>Jeden PC von &amp;Hand aufnehmen</translation>
    </message>
    <message>
        <source>&amp;Valid for</source>
        <translation>&amp;Gültig für</translation>
    </message>
    <message>
        <source>PC&amp;s</source>
        <translation>&amp;Anzahl PCs</translation>
    </message>
    <message>
        <source>&amp;Make a code</source>
        <translation>Code &amp;erzeugen</translation>
    </message>
    <message>
        <source>by hand</source>
        <translation>von Hand</translation>
    </message>
    <message>
        <source>at once</source>
        <translation>sofort</translation>
    </message>
    <message>
        <source>valid</source>
        <translation>gültig</translation>
    </message>
    <message>
        <source>revoked</source>
        <translation>zurückgezogen</translation>
    </message>
    <message>
        <source>expired</source>
        <translation>abgelaufen</translation>
    </message>
    <message>
        <source>used up</source>
        <translation>aufgebraucht</translation>
    </message>
    <message>
        <source>Enter it on up to {pcs} until {end}. It is shown this once; whoever has it can join.</source>
        <translation>Geben Sie ihn bis {end} auf höchstens {pcs} ein. Er wird nur dieses eine Mal angezeigt; wer ihn hat, kann beitreten.</translation>
    </message>
    <message>
        <source>Make this join code worthless?</source>
        <translation>Diesen Beitrittscode ungültig machen?</translation>
    </message>
    <message>
        <source>PCs that have joined with it stay; no other can.</source>
        <translation>PCs, die damit beigetreten sind, bleiben; weitere können es nicht.</translation>
    </message>
    <message>
        <source>No join codes. Make one, and enter it on each PC that should join.</source>
        <translation>Keine Beitrittscodes. Erzeugen Sie einen und geben Sie ihn auf jedem PC ein, der beitreten soll.</translation>
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
        <source>Enter sends, Shift+Enter breaks the line.</source>
        <translation>Eingabe sendet, Umschalt+Eingabe beginnt eine neue Zeile.</translation>
    </message>
    <message>
        <source>Ask the fleet.</source>
        <translation>Fragen Sie die Flotte.</translation>
    </message>
    <message>
        <source>Ask the fleet…</source>
        <translation>Fragen Sie…</translation>
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
    <name>ConcernRow</name>
    <message>
        <source>Approve…</source>
        <translation>Aufnehmen…</translation>
    </message>
    <message>
        <source>Decline</source>
        <translation>Ablehnen</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>Zeigen</translation>
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
        <source>Cop&amp;y</source>
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
        <source>served by %n PCs</source>
        <translation>
            <numerusform>angeboten von %n PC</numerusform>
            <numerusform>angeboten von %n PCs</numerusform>
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
        <source>This PC coordinates the fleet: answers that are being written break off, and nobody gets any until fleetapp is started here again.</source>
        <translation>Dieser PC koordiniert die Flotte: Antworten, die gerade geschrieben werden, brechen ab, und niemand bekommt eine, bis fleetapp hier wieder gestartet wird.</translation>
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
        <source>That did not work</source>
        <translation>Das hat nicht geklappt</translation>
    </message>
</context>
<context>
    <name>DiagnosticsDialog</name>
    <message>
        <source>Export diagnostics</source>
        <translation>Diagnose exportieren</translation>
    </message>
    <message>
        <source>In it: logs, what the doctor says of this PC, settings and where they come from, versions, hardware, and to which fleet this PC belongs. Names of this PC and of the fleet, addresses in your network and names of models are among these.</source>
        <translation>Enthalten sind: Protokolle, die Prüfergebnisse dieses PCs, Einstellungen und woher sie kommen, Versionen, Hardware und zu welcher Flotte dieser PC gehört. Darunter sind die Namen dieses PCs und der Flotte, Adressen in Ihrem Netz und Namen von Modellen.</translation>
    </message>
    <message>
        <source>Never in it: chats, prompts and answers; join codes, API keys, tokens, private keys and passphrases; models.</source>
        <translation>Niemals enthalten sind: Chats, Fragen und Antworten; Beitrittscodes, API-Schlüssel, Tokens, private Schlüssel und Passphrasen; Modelle.</translation>
    </message>
    <message>
        <source>File</source>
        <translation>Datei</translation>
    </message>
    <message>
        <source>&amp;Save…</source>
        <translation>&amp;Speichern…</translation>
    </message>
    <message>
        <source>One zip file that tells whoever helps you how this PC is.</source>
        <translation>Eine ZIP-Datei, die jedem, der Ihnen hilft, zeigt, wie es um diesen PC steht.</translation>
    </message>
    <message>
        <source>Zip files (*.zip)</source>
        <translation>ZIP-Dateien (*.zip)</translation>
    </message>
    <message>
        <source>Examining this PC and collecting logs…</source>
        <translation>Dieser PC wird untersucht, Protokolle werden gesammelt…</translation>
    </message>
    <message>
        <source>Written: {size}. Look through it before you send it to somebody.</source>
        <translation>Geschrieben: {size}. Sehen Sie die Datei durch, bevor Sie sie jemandem schicken.</translation>
    </message>
    <message>
        <source>Show &amp;folder</source>
        <translation>&amp;Ordner zeigen</translation>
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
        <source>fleetapp starts it again; if that fails, start it from the menu of the tray icon.</source>
        <translation>fleetapp startet ihn wieder; wenn das nicht gelingt, starten Sie ihn über das Menü des Symbols.</translation>
    </message>
    <message>
        <source>The agent sent an event that is larger than allowed.</source>
        <translation>Der Agent hat eine Meldung gesendet, die größer ist als erlaubt.</translation>
    </message>
</context>
<context>
    <name>EventStream</name>
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
    <name>FirstRun</name>
    <message>
        <source>Keep your limits</source>
        <translation>Ihre Grenzen merken</translation>
    </message>
    <message>
        <source>Create the fleet</source>
        <translation>Die Flotte erstellen</translation>
    </message>
    <message>
        <source>Join the fleet</source>
        <translation>Der Flotte beitreten</translation>
    </message>
    <message>
        <source>Get a model</source>
        <translation>Ein Modell holen</translation>
    </message>
    <message>
        <source>Start the model</source>
        <translation>Das Modell starten</translation>
    </message>
    <message>
        <source>Processor</source>
        <translation>Prozessor</translation>
    </message>
    <message>
        <source>Graphics processor</source>
        <translation>Grafikprozessor</translation>
    </message>
    <message>
        <source>Neural processor</source>
        <translation>KI-Prozessor (NPU)</translation>
    </message>
    <message>
        <source>Other device</source>
        <translation>Anderes Gerät</translation>
    </message>
    <message>
        <source>It does not answer: {why}</source>
        <translation>Es antwortet nicht: {why}</translation>
    </message>
    <message>
        <source>Is shown only: the models of a fleet do not run on this kind yet.</source>
        <translation>Nur zur Anzeige: Auf dieser Art laufen die Modelle einer Flotte noch nicht.</translation>
    </message>
    <message>
        <source>Can compute, once there is memory to spare.</source>
        <translation>Kann rechnen, sobald Speicher frei ist.</translation>
    </message>
    <message>
        <source>Alone a model of up to about {billions} billion parameters; together with others a part of a larger one.</source>
        <translation>Allein ein Modell mit bis zu etwa {billions} Milliarden Parametern; zusammen mit anderen einen Teil eines größeren.</translation>
    </message>
    <message>
        <source>{total}, of which models may take {room} now</source>
        <translation>{total}, davon dürfen Modelle jetzt {room} belegen</translation>
    </message>
    <message>
        <source>Managed by {policy}.</source>
        <translation>Verwaltet durch {policy}.</translation>
    </message>
    <message>
        <source>Starting</source>
        <translation>Startet</translation>
    </message>
    <message>
        <source>Waiting for another program</source>
        <translation>Wartet auf ein anderes Programm</translation>
    </message>
    <message>
        <source>Downloading</source>
        <translation>Wird heruntergeladen</translation>
    </message>
    <message>
        <source>Unpacking</source>
        <translation>Wird entpackt</translation>
    </message>
    <message>
        <source>Verifying</source>
        <translation>Wird geprüft</translation>
    </message>
    <message>
        <source>Copying</source>
        <translation>Wird kopiert</translation>
    </message>
    <message>
        <source>Converting</source>
        <translation>Wird umgewandelt</translation>
    </message>
    <message>
        <source>Looking at its layers</source>
        <translation>Schichten werden untersucht</translation>
    </message>
    <message>
        <source>Checking its parts against the whole</source>
        <translation>Teile werden mit dem Ganzen verglichen</translation>
    </message>
    <message>
        <source>Cutting it into parts</source>
        <translation>Wird in Teile geschnitten</translation>
    </message>
    <message>
        <source>Sealing its parts</source>
        <translation>Teile werden versiegelt</translation>
    </message>
    <message>
        <source>Finding other PCs</source>
        <translation>Andere PCs finden</translation>
    </message>
    <message>
        <source>Being found by others</source>
        <translation>Für andere erreichbar sein</translation>
    </message>
    <message>
        <source>VPN</source>
        <translation>VPN</translation>
    </message>
    <message>
        <source>Clock</source>
        <translation>Uhr</translation>
    </message>
    <message>
        <source>Choose a model file</source>
        <translation>Eine Modelldatei wählen</translation>
    </message>
    <message>
        <source>Models (*.gguf)</source>
        <translation>Modelle (*.gguf)</translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation>Alle Dateien (*)</translation>
    </message>
</context>
<context>
    <name>FirstRunWindow</name>
    <message>
        <source>Set up fleetapp</source>
        <translation>fleetapp einrichten</translation>
    </message>
    <message>
        <source>&amp;Back</source>
        <translation>Z&amp;urück</translation>
    </message>
    <message>
        <source>Step {n} of {count}</source>
        <translation>Schritt {n} von {count}</translation>
    </message>
    <message>
        <source>Not no&amp;w</source>
        <translation>Nicht &amp;jetzt</translation>
    </message>
    <message>
        <source>Ne&amp;xt</source>
        <translation>&amp;Weiter</translation>
    </message>
    <message>
        <source>&amp;Agree and set up</source>
        <translation>Zus&amp;timmen und einrichten</translation>
    </message>
    <message>
        <source>&amp;Set up</source>
        <translation>E&amp;inrichten</translation>
    </message>
    <message>
        <source>&amp;Finish</source>
        <translation>&amp;Fertig</translation>
    </message>
    <message>
        <source>&amp;Close</source>
        <translation>&amp;Schließen</translation>
    </message>
    <message>
        <source>The agent on this PC is starting.</source>
        <translation>Der Agent auf diesem PC startet gerade.</translation>
    </message>
    <message>
        <source>This PC cannot answer alone: contributing is switched off by {policy}.</source>
        <translation>Dieser PC kann nicht allein antworten: Das Beitragen ist ausgeschaltet durch {policy}.</translation>
    </message>
    <message>
        <source>To answer alone this PC has to contribute.</source>
        <translation>Um allein zu antworten, muss dieser PC beitragen.</translation>
    </message>
</context>
<context>
    <name>Fleet</name>
    <message>
        <source>&amp;Cancel</source>
        <translation>Abb&amp;rechen</translation>
    </message>
    <message>
        <source>Rename {name}</source>
        <translation>{name} umbenennen</translation>
    </message>
    <message>
        <source>Name in this fleet (empty: what the PC calls itself):</source>
        <translation>Name in dieser Flotte (leer: wie der PC sich selbst nennt):</translation>
    </message>
    <message>
        <source>Rename the fleet</source>
        <translation>Flotte umbenennen</translation>
    </message>
    <message>
        <source>Name of the fleet, as all its PCs show it:</source>
        <translation>Name der Flotte, wie alle ihre PCs ihn zeigen:</translation>
    </message>
    <message>
        <source>Save as</source>
        <translation>Speichern unter</translation>
    </message>
    <message>
        <source>{path} could not be written: {why}.</source>
        <translation>{path} konnte nicht geschrieben werden: {why}.</translation>
    </message>
    <message>
        <source>{name} asks to join.</source>
        <translation>{name} bittet um Aufnahme.</translation>
    </message>
    <message>
        <source>Approve it only if its own screen shows this device id: {id}</source>
        <translation>Nehmen Sie ihn nur auf, wenn sein eigener Bildschirm diese Geräte-ID zeigt: {id}</translation>
    </message>
    <message>
        <source>{model} is not served: {why}</source>
        <translation>{model} wird nicht angeboten: {why}</translation>
    </message>
    <message>
        <source>{name} could not load layers {layers} of {model}.</source>
        <translation>{name} konnte die Schichten {layers} von {model} nicht laden.</translation>
    </message>
    <message>
        <source>The certificate of {name} has not been renewed; time left: {left}.</source>
        <translation>Das Zertifikat von {name} wurde nicht erneuert; verbleibende Zeit: {left}.</translation>
    </message>
    <message>
        <source>Check its clock and whether it can reach the coordinator.</source>
        <translation>Prüfen Sie seine Uhr und ob er den Koordinator erreicht.</translation>
    </message>
    <message>
        <source>{n} PCs run another version than the coordinator ({version}): {names}</source>
        <translation>{n} PCs haben eine andere Version als der Koordinator ({version}): {names}</translation>
    </message>
    <message>
        <source>{names} runs another version than the coordinator ({version}).</source>
        <translation>{names} hat eine andere Version als der Koordinator ({version}).</translation>
    </message>
    <message>
        <source>{n} PCs do not answer: {names}</source>
        <translation>{n} PCs antworten nicht: {names}</translation>
    </message>
    <message>
        <source>{names} does not answer.</source>
        <translation>{names} antwortet nicht.</translation>
    </message>
    <message>
        <source>{n} PCs are drained and get no work until resumed: {names}</source>
        <translation>{n} PCs sind entlastet und bekommen keine Arbeit, bis sie wieder eingesetzt werden: {names}</translation>
    </message>
    <message>
        <source>{names} is drained and gets no work until it is resumed.</source>
        <translation>{names} ist entlastet und bekommt keine Arbeit, bis er wieder eingesetzt wird.</translation>
    </message>
    <message>
        <source>{n} PCs are offline: {names}</source>
        <translation>{n} PCs sind nicht verbunden: {names}</translation>
    </message>
    <message>
        <source>{names} is offline.</source>
        <translation>{names} ist nicht verbunden.</translation>
    </message>
    <message>
        <source>{phase} {n}%</source>
        <translation>{phase} {n} %</translation>
    </message>
    <message>
        <source>layers {layers}</source>
        <translation>Schichten {layers}</translation>
    </message>
    <message>
        <source>{size}/s</source>
        <translation>{size}/s</translation>
    </message>
    <message>
        <source>layers {layers} · {device}</source>
        <translation>Schichten {layers} · {device}</translation>
    </message>
    <message>
        <source>{size} · {ms}</source>
        <translation>{size} · {ms}</translation>
    </message>
    <message>
        <source>Stage {n}: {said}.</source>
        <translation>Stufe {n}: {said}.</translation>
    </message>
    <message>
        <source>Link: {link}.</source>
        <translation>Verbindung: {link}.</translation>
    </message>
    <message>
        <source>back to the head</source>
        <translation>zurück zum Anfang</translation>
    </message>
    <message>
        <source>You can look, but not change anything: this PC is a plain member. The coordinator and PCs with the role “admin” may; an admin can give this PC that role.</source>
        <translation>Sie können alles ansehen, aber nichts ändern: Dieser PC ist ein einfaches Mitglied. Ändern dürfen der Koordinator und PCs mit der Rolle „Administrator“; ein Administrator kann diesem PC die Rolle geben.</translation>
    </message>
    <message>
        <source>&amp;Approve…</source>
        <translation>&amp;Aufnehmen…</translation>
    </message>
    <message>
        <source>Let {names} into the fleet?</source>
        <translation>{names} in die Flotte aufnehmen?</translation>
    </message>
    <message>
        <source>Go to that PC and compare: its screen must show the device id {ids}. Anybody who has the join code can choose a name.</source>
        <translation>Gehen Sie zu diesem PC und vergleichen Sie: Sein Bildschirm muss die Geräte-ID {ids} zeigen. Wer den Beitrittscode hat, kann sich jeden Namen geben.</translation>
    </message>
    <message>
        <source>&amp;Approve</source>
        <translation>&amp;Aufnehmen</translation>
    </message>
    <message>
        <source>&amp;Decline</source>
        <translation>A&amp;blehnen</translation>
    </message>
    <message>
        <source>Re&amp;name…</source>
        <translation>&amp;Umbenennen…</translation>
    </message>
    <message>
        <source>Dra&amp;in</source>
        <translation>En&amp;tlasten</translation>
    </message>
    <message>
        <source>Re&amp;sume</source>
        <translation>&amp;Wieder einsetzen</translation>
    </message>
    <message>
        <source>&amp;Make admin…</source>
        <translation>Zum A&amp;dministrator machen…</translation>
    </message>
    <message>
        <source>Let whoever uses {names} administer the fleet?</source>
        <translation>Wer {names} benutzt, soll die Flotte verwalten dürfen?</translation>
    </message>
    <message>
        <source>From there PCs can then be approved and shut out, join codes and API keys made, and roles given.</source>
        <translation>Von dort aus können dann PCs aufgenommen und ausgesperrt, Beitrittscodes und API-Schlüssel erzeugt und Rollen vergeben werden.</translation>
    </message>
    <message>
        <source>&amp;Make admin</source>
        <translation>Zum A&amp;dministrator machen</translation>
    </message>
    <message>
        <source>Make plain &amp;member</source>
        <translation>Zum einfachen &amp;Mitglied machen</translation>
    </message>
    <message>
        <source>&amp;Evict…</source>
        <translation>&amp;Entfernen…</translation>
    </message>
    <message>
        <source>Put {names} out of the fleet?</source>
        <translation>{names} aus der Flotte entfernen?</translation>
    </message>
    <message>
        <source>Its connections are cut at once and others take its work over. It may join again with a join code. To keep it out for good, revoke it instead.</source>
        <translation>Seine Verbindungen werden sofort getrennt, andere übernehmen seine Arbeit. Mit einem Beitrittscode kann er wieder beitreten. Um ihn für immer fernzuhalten, sperren Sie ihn stattdessen aus.</translation>
    </message>
    <message>
        <source>&amp;Evict</source>
        <translation>&amp;Entfernen</translation>
    </message>
    <message>
        <source>Re&amp;voke…</source>
        <translation>Aus&amp;sperren…</translation>
    </message>
    <message>
        <source>Shut {names} out of the fleet for good?</source>
        <translation>{names} für immer aus der Flotte aussperren?</translation>
    </message>
    <message>
        <source>Its connections are cut at once, its certificate is worthless, and no join code lets it in again until an admin reinstates it. Right for a PC that is lost or stolen.</source>
        <translation>Seine Verbindungen werden sofort getrennt, sein Zertifikat wird wertlos, und kein Beitrittscode lässt ihn wieder ein, bis ein Administrator ihn wieder zulässt. Richtig für einen PC, der verloren ging oder gestohlen wurde.</translation>
    </message>
    <message>
        <source>&amp;Revoke</source>
        <translation>Aus&amp;sperren</translation>
    </message>
    <message>
        <source>Reins&amp;tate</source>
        <translation>Wieder &amp;zulassen</translation>
    </message>
    <message>
        <source>The agent on this PC does not answer.</source>
        <translation>Der Agent auf diesem PC antwortet nicht.</translation>
    </message>
    <message>
        <source>The agent on this PC is not there. It is being started; this takes some seconds.</source>
        <translation>Der Agent auf diesem PC ist nicht da. Er wird gestartet; das dauert einige Sekunden.</translation>
    </message>
    <message>
        <source>The coordinator, this PC, is starting. {reason} The other PCs come back by themselves.</source>
        <translation>Der Koordinator, dieser PC, startet. {reason} Die anderen PCs kommen von selbst zurück.</translation>
    </message>
    <message>
        <source>The coordinator cannot be reached. {reason} This PC tries again by itself; until then it gets no answers, and nothing can be changed from here.</source>
        <translation>Der Koordinator ist nicht erreichbar. {reason} Dieser PC versucht es von selbst wieder; bis dahin bekommt er keine Antworten, und von hier aus lässt sich nichts ändern.</translation>
    </message>
    <message>
        <source>The coordinator, this PC, cannot work. {why} It tries again every few seconds; until then nobody in the fleet gets answers.</source>
        <translation>Der Koordinator, dieser PC, kann nicht arbeiten. {why} Er versucht es alle paar Sekunden wieder; bis dahin bekommt niemand in der Flotte Antworten.</translation>
    </message>
    <message>
        <source>{why} It is asked again by itself.</source>
        <translation>{why} Es wird von selbst wieder gefragt.</translation>
    </message>
    <message>
        <source>{why} What you see is the state of {time}.</source>
        <translation>{why} Sie sehen den Stand von {time}.</translation>
    </message>
    <message>
        <source>not served</source>
        <translation>nicht angeboten</translation>
    </message>
    <message>
        <source>unknown</source>
        <translation>unbekannt</translation>
    </message>
    <message>
        <source>{name} (with terms)</source>
        <translation>{name} (mit Bedingungen)</translation>
    </message>
    <message>
        <source>{n} layers</source>
        <translation>{n} Schichten</translation>
    </message>
    <message>
        <source>{n} tokens</source>
        <translation>{n} Tokens</translation>
    </message>
    <message>
        <source>no chat template</source>
        <translation>keine Chatvorlage</translation>
    </message>
    <message>
        <source>Starting</source>
        <translation>Startet</translation>
    </message>
    <message>
        <source>Waiting for another process</source>
        <translation>Wartet auf einen anderen Prozess</translation>
    </message>
    <message>
        <source>Downloading</source>
        <translation>Wird heruntergeladen</translation>
    </message>
    <message>
        <source>Unpacking</source>
        <translation>Wird entpackt</translation>
    </message>
    <message>
        <source>Verifying</source>
        <translation>Wird geprüft</translation>
    </message>
    <message>
        <source>Copying</source>
        <translation>Wird kopiert</translation>
    </message>
    <message>
        <source>Converting</source>
        <translation>Wird umgewandelt</translation>
    </message>
    <message>
        <source>Inspecting</source>
        <translation>Wird untersucht</translation>
    </message>
    <message>
        <source>Comparing the parts with the whole</source>
        <translation>Teile werden mit dem Ganzen verglichen</translation>
    </message>
    <message>
        <source>Splitting into shards</source>
        <translation>Wird in Teile geschnitten</translation>
    </message>
    <message>
        <source>Hashing</source>
        <translation>Prüfsummen werden berechnet</translation>
    </message>
    <message>
        <source>{done} of {total}</source>
        <translation>{done} von {total}</translation>
    </message>
    <message>
        <source>{free} of {total}</source>
        <translation>{free} von {total}</translation>
    </message>
    <message>
        <source>{version} ≠ {other}</source>
        <translation>{version} ≠ {other}</translation>
    </message>
    <message>
        <source>{n} °C</source>
        <translation>{n} °C</translation>
    </message>
    <message>
        <source>PC</source>
        <translation>PC</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Status</translation>
    </message>
    <message>
        <source>Holds</source>
        <translation>Hält</translation>
    </message>
    <message>
        <source>Phase</source>
        <translation>Phase</translation>
    </message>
    <message>
        <source>Tokens/s</source>
        <translation>Tokens/s</translation>
    </message>
    <message>
        <source>Devices</source>
        <translation>Geräte</translation>
    </message>
    <message>
        <source>Memory free</source>
        <translation>Freier Speicher</translation>
    </message>
    <message>
        <source>Heat</source>
        <translation>Temperatur</translation>
    </message>
    <message>
        <source>Last seen</source>
        <translation>Zuletzt gesehen</translation>
    </message>
    <message>
        <source>Certificate</source>
        <translation>Zertifikat</translation>
    </message>
    <message>
        <source>App</source>
        <translation>App</translation>
    </message>
    <message>
        <source>Runtime</source>
        <translation>Laufzeit</translation>
    </message>
    <message>
        <source>Device id</source>
        <translation>Geräte-ID</translation>
    </message>
    <message>
        <source>The coordinator runs {version}.</source>
        <translation>Der Koordinator hat {version}.</translation>
    </message>
    <message>
        <source>Waits for approval</source>
        <translation>Wartet auf Aufnahme</translation>
    </message>
    <message>
        <source>Shut out</source>
        <translation>Ausgesperrt</translation>
    </message>
    <message>
        <source>Offline</source>
        <translation>Nicht verbunden</translation>
    </message>
    <message>
        <source>Does not answer</source>
        <translation>Antwortet nicht</translation>
    </message>
    <message>
        <source>Drained by an admin</source>
        <translation>Von einem Administrator entlastet</translation>
    </message>
    <message>
        <source>Finishing, then pausing</source>
        <translation>Wird fertig, dann Pause</translation>
    </message>
    <message>
        <source>Working</source>
        <translation>Arbeitet</translation>
    </message>
    <message>
        <source>Ready to work</source>
        <translation>Bereit zu arbeiten</translation>
    </message>
    <message>
        <source>Not working · {why}</source>
        <translation>Arbeitet nicht · {why}</translation>
    </message>
    <message>
        <source>Not working</source>
        <translation>Arbeitet nicht</translation>
    </message>
    <message>
        <source>Could not load its part</source>
        <translation>Konnte seinen Teil nicht laden</translation>
    </message>
    <message>
        <source>Getting ready</source>
        <translation>Macht sich bereit</translation>
    </message>
    <message>
        <source>Standing by</source>
        <translation>In Bereitschaft</translation>
    </message>
    <message>
        <source>finishing</source>
        <translation>wird fertig</translation>
    </message>
    <message>
        <source>off by policy</source>
        <translation>durch Richtlinie aus</translation>
    </message>
    <message>
        <source>its user has not agreed</source>
        <translation>sein Nutzer hat nicht zugestimmt</translation>
    </message>
    <message>
        <source>no device lent</source>
        <translation>kein Gerät freigegeben</translation>
    </message>
    <message>
        <source>paused</source>
        <translation>Pause</translation>
    </message>
    <message>
        <source>going to sleep</source>
        <translation>geht in den Ruhezustand</translation>
    </message>
    <message>
        <source>outside its hours</source>
        <translation>außerhalb seiner Zeiten</translation>
    </message>
    <message>
        <source>on battery</source>
        <translation>Akkubetrieb</translation>
    </message>
    <message>
        <source>saving battery</source>
        <translation>spart Strom</translation>
    </message>
    <message>
        <source>battery low</source>
        <translation>Akku fast leer</translation>
    </message>
    <message>
        <source>metered network</source>
        <translation>begrenztes Datenvolumen</translation>
    </message>
    <message>
        <source>a program fills the screen</source>
        <translation>ein Programm füllt den Bildschirm</translation>
    </message>
    <message>
        <source>a program wants the PC</source>
        <translation>ein Programm braucht den PC</translation>
    </message>
    <message>
        <source>too hot</source>
        <translation>zu heiß</translation>
    </message>
    <message>
        <source>memory low</source>
        <translation>wenig Speicher</translation>
    </message>
    <message>
        <source>disk full</source>
        <translation>Datenträger voll</translation>
    </message>
    <message>
        <source>processor busy</source>
        <translation>Prozessor ausgelastet</translation>
    </message>
    <message>
        <source>in use</source>
        <translation>wird benutzt</translation>
    </message>
    <message>
        <source>member</source>
        <translation>Mitglied</translation>
    </message>
    <message>
        <source>coordinator</source>
        <translation>Koordinator</translation>
    </message>
    <message>
        <source>admin</source>
        <translation>Administrator</translation>
    </message>
    <message>
        <source>{model} · {layers}</source>
        <translation>{model} · {layers}</translation>
    </message>
    <message>
        <source>Being planned</source>
        <translation>Wird geplant</translation>
    </message>
    <message>
        <source>Being prepared</source>
        <translation>Wird vorbereitet</translation>
    </message>
    <message>
        <source>Being linked</source>
        <translation>Wird verbunden</translation>
    </message>
    <message>
        <source>Live</source>
        <translation>In Betrieb</translation>
    </message>
    <message>
        <source>Broken</source>
        <translation>Unterbrochen</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>Gestoppt</translation>
    </message>
    <message>
        <source>exact (32 bits)</source>
        <translation>exakt (32 Bit)</translation>
    </message>
    <message>
        <source>fast (16 bits)</source>
        <translation>schnell (16 Bit)</translation>
    </message>
    <message>
        <source>now</source>
        <translation>jetzt</translation>
    </message>
    <message>
        <source>{n} s ago</source>
        <translation>vor {n} s</translation>
    </message>
    <message>
        <source>{n} min ago</source>
        <translation>vor {n} min</translation>
    </message>
    <message>
        <source>{n} h ago</source>
        <translation>vor {n} h</translation>
    </message>
    <message>
        <source>{n} days ago</source>
        <translation>vor {n} Tagen</translation>
    </message>
    <message>
        <source>expired</source>
        <translation>abgelaufen</translation>
    </message>
    <message>
        <source>{n} h</source>
        <translation>{n} h</translation>
    </message>
    <message>
        <source>{n} days</source>
        <translation>{n} Tage</translation>
    </message>
    <message>
        <source>{n} ms</source>
        <translation>{n} ms</translation>
    </message>
    <message>
        <source>{n}%</source>
        <translation>{n} %</translation>
    </message>
    <message>
        <source>{names} and {n} more</source>
        <translation>{names} und {n} weitere</translation>
    </message>
</context>
<context>
    <name>FleetWindow</name>
    <message>
        <source>Fleet</source>
        <translation>Flotte</translation>
    </message>
    <message>
        <source>Rename the fleet…</source>
        <translation>Flotte umbenennen…</translation>
    </message>
    <message>
        <source>PCs</source>
        <translation>PCs</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Plan</source>
        <translation>Plan</translation>
    </message>
    <message>
        <source>Join codes</source>
        <translation>Beitrittscodes</translation>
    </message>
    <message>
        <source>API keys</source>
        <translation>API-Schlüssel</translation>
    </message>
    <message>
        <source>Audit</source>
        <translation>Protokoll</translation>
    </message>
    <message>
        <source>Parts of the fleet</source>
        <translation>Teile der Flotte</translation>
    </message>
    <message>
        <source>&amp;Join a fleet…</source>
        <translation>Einer Flotte bei&amp;treten…</translation>
    </message>
    <message>
        <source>C&amp;reate a fleet…</source>
        <translation>Flotte &amp;erstellen…</translation>
    </message>
    <message>
        <source>Fleet “{name}”</source>
        <translation>Flotte „{name}“</translation>
    </message>
    <message>
        <source>Id {id}</source>
        <translation>ID {id}</translation>
    </message>
    <message>
        <source>Coordinator: {name}</source>
        <translation>Koordinator: {name}</translation>
    </message>
    <message>
        <source>This PC is in no fleet. Join the one of your office with a code from its administrator, or create a new one with this PC as its coordinator.</source>
        <translation>Dieser PC gehört zu keiner Flotte. Treten Sie der Ihres Büros mit einem Code vom Administrator bei, oder erstellen Sie eine neue mit diesem PC als Koordinator.</translation>
    </message>
    <message>
        <source>Nothing is known of the fleet yet. {why}</source>
        <translation>Von der Flotte ist noch nichts bekannt. {why}</translation>
    </message>
    <message>
        <source>Asking the coordinator…</source>
        <translation>Der Koordinator wird gefragt…</translation>
    </message>
</context>
<context>
    <name>FolderControl</name>
    <message>
        <source>Browse…</source>
        <translation>Durchsuchen…</translation>
    </message>
    <message>
        <source>Browse: {what}</source>
        <translation>Durchsuchen: {what}</translation>
    </message>
</context>
<context>
    <name>HoursControl</name>
    <message>
        <source>Add hours</source>
        <translation>Zeiten hinzufügen</translation>
    </message>
    <message>
        <source>Add hours: {what}</source>
        <translation>Zeiten hinzufügen: {what}</translation>
    </message>
</context>
<context>
    <name>HoursRow</name>
    <message>
        <source>{what} from</source>
        <translation>{what} von</translation>
    </message>
    <message>
        <source>{what} to</source>
        <translation>{what} bis</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>Remove these hours</source>
        <translation>Diese Zeiten entfernen</translation>
    </message>
    <message>
        <source>to</source>
        <translation>bis</translation>
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
    <name>JobRow</name>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Progress of {model}</source>
        <translation>Fortschritt von {model}</translation>
    </message>
    <message>
        <source>Cancel {model}</source>
        <translation>{model} abbrechen</translation>
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
    <name>KeysPage</name>
    <message>
        <source>New API key</source>
        <translation>Neuer API-Schlüssel</translation>
    </message>
    <message>
        <source>API key</source>
        <translation>API-Schlüssel</translation>
    </message>
    <message>
        <source>API keys</source>
        <translation>API-Schlüssel</translation>
    </message>
    <message>
        <source>Id</source>
        <translation>ID</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>At a time</source>
        <translation>Gleichzeitig</translation>
    </message>
    <message>
        <source>A minute</source>
        <translation>Je Minute</translation>
    </message>
    <message>
        <source>Made</source>
        <translation>Erzeugt</translation>
    </message>
    <message>
        <source>Made on</source>
        <translation>Erzeugt auf</translation>
    </message>
    <message>
        <source>program or person</source>
        <translation>Programm oder Person</translation>
    </message>
    <message>
        <source>any number</source>
        <translation>beliebig viele</translation>
    </message>
    <message>
        <source>&amp;Name</source>
        <translation>&amp;Name</translation>
    </message>
    <message>
        <source>Requests &amp;at a time</source>
        <translation>&amp;Anfragen gleichzeitig</translation>
    </message>
    <message>
        <source>a m&amp;inute</source>
        <translation>je M&amp;inute</translation>
    </message>
    <message>
        <source>&amp;Make a key</source>
        <translation>Schlüssel &amp;erzeugen</translation>
    </message>
    <message>
        <source>any</source>
        <translation>beliebig</translation>
    </message>
    <message>
        <source>It is shown this once. Programs send it as “Authorization: Bearer …”.</source>
        <translation>Er wird nur dieses eine Mal angezeigt. Programme senden ihn als „Authorization: Bearer …“.</translation>
    </message>
    <message>
        <source>Make the key of {name} worthless?</source>
        <translation>Den Schlüssel von {name} ungültig machen?</translation>
    </message>
    <message>
        <source>Programs that use it are refused from their next request on.</source>
        <translation>Programme, die ihn benutzen, werden ab der nächsten Anfrage abgewiesen.</translation>
    </message>
    <message>
        <source>No API keys. Programs need one to ask the fleet; make it above.</source>
        <translation>Keine API-Schlüssel. Programme brauchen einen, um die Flotte zu fragen; erzeugen Sie ihn oben.</translation>
    </message>
</context>
<context>
    <name>LentDevices</name>
    <message>
        <source>Lend the pr&amp;ocessor</source>
        <translation>Pr&amp;ozessor bereitstellen</translation>
    </message>
    <message>
        <source>Lend the &amp;graphics processor</source>
        <translation>&amp;Grafikprozessor bereitstellen</translation>
    </message>
    <message>
        <source>Lend the &amp;neural processor</source>
        <translation>&amp;KI-Prozessor (NPU) bereitstellen</translation>
    </message>
</context>
<context>
    <name>LimitsPage</name>
    <message>
        <source>What this PC gives</source>
        <translation>Was dieser PC gibt</translation>
    </message>
    <message>
        <source>Limits</source>
        <translation>Grenzen</translation>
    </message>
    <message>
        <source>What is not locked can be changed later in the settings.</source>
        <translation>Was nicht gesperrt ist, können Sie später in den Einstellungen ändern.</translation>
    </message>
    <message>
        <source>This PC computes the answers to your own questions. Contributing is switched on for that; your fleet has no other PC, so nobody else can use this one.</source>
        <translation>Dieser PC berechnet die Antworten auf Ihre eigenen Fragen. Dafür wird das Beitragen eingeschaltet; Ihre Flotte hat keinen anderen PC, deshalb kann niemand sonst diesen benutzen.</translation>
    </message>
    <message>
        <source>Your organisation has laid down whether this PC contributes. You can ask the fleet in any case.</source>
        <translation>Ihre Organisation hat festgelegt, ob dieser PC beiträgt. Die Flotte fragen können Sie in jedem Fall.</translation>
    </message>
    <message>
        <source>You decide. Without the first tick this PC gives nothing, and you can ask the fleet all the same.</source>
        <translation>Sie entscheiden. Ohne das erste Häkchen gibt dieser PC nichts, und Sie können die Flotte trotzdem fragen.</translation>
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
    <name>Mark</name>
    <message>
        <source>fine</source>
        <translation>in Ordnung</translation>
    </message>
    <message>
        <source>look at this</source>
        <translation>bitte ansehen</translation>
    </message>
    <message>
        <source>does not work</source>
        <translation>geht nicht</translation>
    </message>
    <message>
        <source>not yet</source>
        <translation>noch nicht</translation>
    </message>
    <message>
        <source>under way</source>
        <translation>läuft</translation>
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
    <name>ModelCard</name>
    <message>
        <source>If it were served alone</source>
        <translation>Wenn es allein angeboten würde</translation>
    </message>
    <message>
        <source>as in the settings</source>
        <translation>wie in den Einstellungen</translation>
    </message>
    <message>
        <source>automatic</source>
        <translation>automatisch</translation>
    </message>
    <message>
        <source>&amp;Start</source>
        <translation>S&amp;tarten</translation>
    </message>
    <message>
        <source>S&amp;top…</source>
        <translation>St&amp;oppen…</translation>
    </message>
    <message>
        <source>Veri&amp;fy</source>
        <translation>P&amp;rüfen</translation>
    </message>
    <message>
        <source>Hash every part again and compare</source>
        <translation>Die Prüfsumme jedes Teils neu berechnen und vergleichen</translation>
    </message>
    <message>
        <source>Re&amp;move…</source>
        <translation>&amp;Entfernen…</translation>
    </message>
    <message>
        <source>&amp;Precision</source>
        <translation>&amp;Genauigkeit</translation>
    </message>
    <message>
        <source>Stag&amp;es</source>
        <translation>St&amp;ufen</translation>
    </message>
    <message>
        <source>Licence: {name}</source>
        <translation>Lizenz: {name}</translation>
    </message>
    <message>
        <source>Now: {state}</source>
        <translation>Jetzt: {state}</translation>
    </message>
    <message>
        <source>Asking the planner…</source>
        <translation>Der Planer wird gefragt…</translation>
    </message>
    <message>
        <source>Planned chain {n}</source>
        <translation>Geplante Kette {n}</translation>
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
    <name>ModelPlanCard</name>
    <message>
        <source>Plan for {model}, {users} at once</source>
        <translation>Plan für {model}, {users} gleichzeitig</translation>
    </message>
    <message>
        <source>Planned chain {n}</source>
        <translation>Geplante Kette {n}</translation>
    </message>
    <message>
        <source>Ways to serve {model}</source>
        <translation>Wege, {model} anzubieten</translation>
    </message>
    <message>
        <source>Way</source>
        <translation>Weg</translation>
    </message>
    <message>
        <source>One user, tokens/s</source>
        <translation>Ein Nutzer, Tokens/s</translation>
    </message>
    <message>
        <source>{n} at once, tokens/s</source>
        <translation>{n} gleichzeitig, Tokens/s</translation>
    </message>
    <message>
        <source>PCs</source>
        <translation>PCs</translation>
    </message>
    <message>
        <source>this plan</source>
        <translation>dieser Plan</translation>
    </message>
    <message>
        <source>one PC alone</source>
        <translation>ein PC allein</translation>
    </message>
    <message>
        <source>the whole model on several PCs</source>
        <translation>das ganze Modell auf mehreren PCs</translation>
    </message>
    <message>
        <source>one chain over PCs</source>
        <translation>eine Kette über PCs</translation>
    </message>
</context>
<context>
    <name>ModelsPage</name>
    <message>
        <source>Models are kept, started and stopped on the coordinator&apos;s PC.</source>
        <translation>Modelle werden auf dem PC des Koordinators aufbewahrt, gestartet und gestoppt.</translation>
    </message>
    <message>
        <source>Models that can be served</source>
        <translation>Modelle, die angeboten werden können</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Status</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
    </message>
    <message>
        <source>Layers</source>
        <translation>Schichten</translation>
    </message>
    <message>
        <source>Licence</source>
        <translation>Lizenz</translation>
    </message>
    <message>
        <source>Models that can be fetched</source>
        <translation>Modelle, die geholt werden können</translation>
    </message>
    <message>
        <source>Catalogue</source>
        <translation>Katalog</translation>
    </message>
    <message>
        <source>&amp;Import a file…</source>
        <translation>Datei &amp;importieren…</translation>
    </message>
    <message>
        <source>A GGUF file on this PC</source>
        <translation>Eine GGUF-Datei auf diesem PC</translation>
    </message>
    <message>
        <source>&amp;Get</source>
        <translation>&amp;Herunterladen</translation>
    </message>
    <message>
        <source>Library</source>
        <translation>Bibliothek</translation>
    </message>
    <message>
        <source>To be fetched</source>
        <translation>Zum Herunterladen</translation>
    </message>
    <message>
        <source>The chosen model</source>
        <translation>Das gewählte Modell</translation>
    </message>
    <message>
        <source>No model is here yet. Get one below, or import a GGUF file.</source>
        <translation>Noch ist kein Modell hier. Laden Sie unten eines herunter, oder importieren Sie eine GGUF-Datei.</translation>
    </message>
    <message>
        <source>The library has not been heard of yet.</source>
        <translation>Von der Bibliothek ist noch nichts bekannt.</translation>
    </message>
    <message>
        <source>{done} of {total}</source>
        <translation>{done} von {total}</translation>
    </message>
    <message>
        <source>Stop serving {model}?</source>
        <translation>{model} nicht mehr anbieten?</translation>
    </message>
    <message>
        <source>Answers that are being written break off. PCs let their parts go from memory and keep them on the disk.</source>
        <translation>Laufende Antworten brechen ab. Die PCs geben ihre Teile aus dem Speicher frei und behalten sie auf dem Datenträger.</translation>
    </message>
    <message>
        <source>&amp;Stop</source>
        <translation>St&amp;oppen</translation>
    </message>
    <message>
        <source>Remove {model} from this PC?</source>
        <translation>{model} von diesem PC entfernen?</translation>
    </message>
    <message>
        <source>{size} are freed. Using it again takes another download or import.</source>
        <translation>{size} werden frei. Um es wieder zu benutzen, muss es neu heruntergeladen oder importiert werden.</translation>
    </message>
    <message>
        <source>Re&amp;move</source>
        <translation>&amp;Entfernen</translation>
    </message>
    <message>
        <source>Agree to the terms of {model}?</source>
        <translation>Den Bedingungen von {model} zustimmen?</translation>
    </message>
    <message>
        <source>Licence {name}, to be read at {url}. Its terms restrict use.</source>
        <translation>Lizenz {name}, nachzulesen unter {url}. Ihre Bedingungen schränken die Nutzung ein.</translation>
    </message>
    <message>
        <source>&amp;Agree and get</source>
        <translation>&amp;Zustimmen und herunterladen</translation>
    </message>
    <message>
        <source>Import a model</source>
        <translation>Ein Modell importieren</translation>
    </message>
    <message>
        <source>GGUF models (*.gguf)</source>
        <translation>GGUF-Modelle (*.gguf)</translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation>Alle Dateien (*)</translation>
    </message>
</context>
<context>
    <name>NodesPage</name>
    <message>
        <source>Filter: name, state, model, version…</source>
        <translation>Filter: Name, Status, Modell, Version…</translation>
    </message>
    <message>
        <source>Filter the table of PCs</source>
        <translation>Die Tabelle der PCs filtern</translation>
    </message>
    <message>
        <source>PCs of the fleet</source>
        <translation>PCs der Flotte</translation>
    </message>
    <message>
        <source>More ▾</source>
        <translation>Mehr ▾</translation>
    </message>
    <message>
        <source>More for the chosen PCs</source>
        <translation>Mehr für die gewählten PCs</translation>
    </message>
    <message>
        <source>CS&amp;V…</source>
        <translation>CS&amp;V…</translation>
    </message>
    <message>
        <source>Save the table as CSV</source>
        <translation>Die Tabelle als CSV speichern</translation>
    </message>
    <message>
        <source>Save what the table shows for a spreadsheet</source>
        <translation>Was die Tabelle zeigt, für eine Tabellenkalkulation speichern</translation>
    </message>
    <message>
        <source>{n} of {all}</source>
        <translation>{n} von {all}</translation>
    </message>
    <message>
        <source>No PC matches. Esc in the filter shows all again.</source>
        <translation>Kein PC passt. Esc im Filter zeigt wieder alle.</translation>
    </message>
    <message>
        <source>This PC is alone in its fleet. Make a join code (tab “Join codes”) and enter it on the others.</source>
        <translation>Dieser PC ist allein in seiner Flotte. Erzeugen Sie einen Beitrittscode (Reiter „Beitrittscodes“) und geben Sie ihn auf den anderen ein.</translation>
    </message>
    <message>
        <source>Nothing is known of the fleet yet.</source>
        <translation>Von der Flotte ist noch nichts bekannt.</translation>
    </message>
</context>
<context>
    <name>Notifier</name>
    <message>
        <source>This PC needs attention</source>
        <translation>Dieser PC braucht Aufmerksamkeit</translation>
    </message>
    <message>
        <source>The agent has ended</source>
        <translation>Der Agent wurde beendet</translation>
    </message>
    <message>
        <source>This PC was let in</source>
        <translation>Dieser PC wurde aufgenommen</translation>
    </message>
    <message>
        <source>It is now part of “{name}”.</source>
        <translation>Er gehört jetzt zu „{name}“.</translation>
    </message>
    <message>
        <source>This PC was not let in</source>
        <translation>Dieser PC wurde nicht aufgenommen</translation>
    </message>
    <message>
        <source>fleetapp is set up</source>
        <translation>fleetapp ist eingerichtet</translation>
    </message>
    <message>
        <source>Open the chat from its icon.</source>
        <translation>Öffnen Sie den Chat über das Symbol.</translation>
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
    <name>OwnSettings</name>
    <message>
        <source>Desktop app</source>
        <translation>Desktop-App</translation>
    </message>
    <message>
        <source>The file {file} cannot be written.</source>
        <translation>Die Datei {file} kann nicht geschrieben werden.</translation>
    </message>
    <message>
        <source>an administrator, for all users of this PC</source>
        <translation>einen Administrator, für alle Nutzer dieses PCs</translation>
    </message>
    <message>
        <source>As the system</source>
        <translation>Wie das System</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>Hell</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>Dunkel</translation>
    </message>
    <message>
        <source>Start when I log in</source>
        <translation>Bei der Anmeldung starten</translation>
    </message>
    <message>
        <source>Start fleetapp with your session, so that this PC can contribute. It is the operating system&apos;s own switch.</source>
        <translation>fleetapp mit Ihrer Sitzung starten, damit dieser PC beitragen kann. Es ist der Schalter des Betriebssystems selbst.</translation>
    </message>
    <message>
        <source>Notifications</source>
        <translation>Benachrichtigungen</translation>
    </message>
    <message>
        <source>Let the tray icon tell what happens by itself.</source>
        <translation>Das Symbol darf von sich aus melden, was geschieht.</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>Sprache</translation>
    </message>
    <message>
        <source>Spoken after the next start of this app.</source>
        <translation>Gilt ab dem nächsten Start dieser App.</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>Farben</translation>
    </message>
    <message>
        <source>High contrast of the system goes before it.</source>
        <translation>Hoher Kontrast des Systems hat Vorrang.</translation>
    </message>
</context>
<context>
    <name>PcPage</name>
    <message>
        <source>This PC</source>
        <translation>Dieser PC</translation>
    </message>
    <message>
        <source>What it can compute with</source>
        <translation>Womit er rechnen kann</translation>
    </message>
    <message>
        <source>Looking for devices</source>
        <translation>Geräte werden gesucht</translation>
    </message>
    <message>
        <source>The way to other PCs</source>
        <translation>Der Weg zu anderen PCs</translation>
    </message>
    <message>
        <source>Checking the connection</source>
        <translation>Die Verbindung wird geprüft</translation>
    </message>
    <message>
        <source>Check &amp;again</source>
        <translation>&amp;Noch einmal prüfen</translation>
    </message>
    <message>
        <source>Devices</source>
        <translation>Geräte</translation>
    </message>
    <message>
        <source>Check</source>
        <translation>Prüfung</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>Close programs that you do not need.</source>
        <translation>Schließen Sie Programme, die Sie nicht brauchen.</translation>
    </message>
</context>
<context>
    <name>PlanPage</name>
    <message>
        <source>What if: +16 (a PC with 16 GB), -NAME, model=NAME, users=20; several with commas</source>
        <translation>Was wäre wenn: +16 (ein PC mit 16 GB), -NAME, model=NAME, users=20; mehrere mit Kommas</translation>
    </message>
    <message>
        <source>What if</source>
        <translation>Was wäre wenn</translation>
    </message>
    <message>
        <source>&amp;Plan</source>
        <translation>Pla&amp;nen</translation>
    </message>
    <message>
        <source>Chains and plans</source>
        <translation>Ketten und Pläne</translation>
    </message>
    <message>
        <source>No model is served. Start one in the tab “Models”.</source>
        <translation>Es wird kein Modell angeboten. Starten Sie eines im Reiter „Modelle“.</translation>
    </message>
    <message>
        <source>The planner can be asked on the coordinator&apos;s PC only.</source>
        <translation>Der Planer kann nur auf dem PC des Koordinators gefragt werden.</translation>
    </message>
</context>
<context>
    <name>PulseBar</name>
    <message>
        <source>Pulse of the fleet</source>
        <translation>Puls der Flotte</translation>
    </message>
    <message>
        <source>PCs</source>
        <translation>PCs</translation>
    </message>
    <message>
        <source>contributing</source>
        <translation>tragen bei</translation>
    </message>
    <message>
        <source>chains</source>
        <translation>Ketten</translation>
    </message>
    <message>
        <source>tokens/s</source>
        <translation>Tokens/s</translation>
    </message>
    <message>
        <source>waiting</source>
        <translation>wartend</translation>
    </message>
    <message>
        <source>Tokens/s</source>
        <translation>Tokens/s</translation>
    </message>
    <message>
        <source>Next token</source>
        <translation>Nächstes Token</translation>
    </message>
    <message>
        <source>Guesses right</source>
        <translation>Treffer beim Raten</translation>
    </message>
    <message>
        <source>{n}/{all}</source>
        <translation>{n}/{all}</translation>
    </message>
    <message>
        <source>{n} of {all} PCs are connected</source>
        <translation>{n} von {all} PCs sind verbunden</translation>
    </message>
    <message>
        <source>Connected PCs that may work</source>
        <translation>Verbundene PCs, die arbeiten dürfen</translation>
    </message>
    <message>
        <source>{n} of {all} chains answer now</source>
        <translation>{n} von {all} Ketten antworten jetzt</translation>
    </message>
    <message>
        <source>Of all answers together</source>
        <translation>Aller Antworten zusammen</translation>
    </message>
    <message>
        <source>{running} answers are being written, {waiting} wait</source>
        <translation>Antworten in Arbeit: {running}, wartend: {waiting}</translation>
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
    <name>SecretsPage</name>
    <message>
        <source>&amp;Revoke…</source>
        <translation>&amp;Zurückziehen…</translation>
    </message>
    <message>
        <source>Only admins see these.</source>
        <translation>Nur Administratoren sehen diese.</translation>
    </message>
    <message>
        <source>&amp;Revoke</source>
        <translation>&amp;Zurückziehen</translation>
    </message>
</context>
<context>
    <name>SettingRow</name>
    <message>
        <source>Reset</source>
        <translation>Zurücksetzen</translation>
    </message>
    <message>
        <source>Reset: {what}</source>
        <translation>Zurücksetzen: {what}</translation>
    </message>
    <message>
        <source>on</source>
        <translation>ein</translation>
    </message>
    <message>
        <source>off</source>
        <translation>aus</translation>
    </message>
    <message>
        <source>Default: {value}.</source>
        <translation>Vorgabe: {value}.</translation>
    </message>
    <message>
        <source>Back to: {value}</source>
        <translation>Zurück auf: {value}</translation>
    </message>
    <message>
        <source>Set by the environment variable {name}.</source>
        <translation>Gesetzt durch die Umgebungsvariable {name}.</translation>
    </message>
    <message>
        <source>Managed by {whom}.</source>
        <translation>Verwaltet durch {whom}.</translation>
    </message>
    <message>
        <source>The agent takes this over at its next start.</source>
        <translation>Der Agent übernimmt das beim nächsten Start.</translation>
    </message>
    <message>
        <source>Holds for models that are loaded from now on.</source>
        <translation>Gilt für Modelle, die ab jetzt geladen werden.</translation>
    </message>
</context>
<context>
    <name>SettingsWindow</name>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Search settings (Ctrl+F)</source>
        <translation>Suchen (Strg+F)</translation>
    </message>
    <message>
        <source>Search settings</source>
        <translation>Einstellungen durchsuchen</translation>
    </message>
    <message>
        <source>Sections</source>
        <translation>Bereiche</translation>
    </message>
    <message>
        <source>&amp;Export diagnostics…</source>
        <translation>&amp;Diagnose exportieren…</translation>
    </message>
    <message>
        <source>&amp;Restart the agent now…</source>
        <translation>Agent jetzt neu &amp;starten…</translation>
    </message>
    <message>
        <source>No setting has these words.</source>
        <translation>Keine Einstellung enthält diese Wörter.</translation>
    </message>
    <message>
        <source>The agent restarts; this takes a few seconds.</source>
        <translation>Der Agent startet neu; das dauert ein paar Sekunden.</translation>
    </message>
    <message>
        <source>The agent on this PC is starting.</source>
        <translation>Der Agent auf diesem PC startet gerade.</translation>
    </message>
    <message>
        <source>“{setting}” waits for the agent&apos;s next start.</source>
        <translation>„{setting}“ gilt ab dem nächsten Start des Agenten.</translation>
    </message>
    <message>
        <source>{count} settings wait for the agent&apos;s next start.</source>
        <translation>{count} Einstellungen gelten ab dem nächsten Start des Agenten.</translation>
    </message>
    <message>
        <source>Restart the agent?</source>
        <translation>Den Agenten neu starten?</translation>
    </message>
    <message>
        <source>The agent of this PC ends and starts again with the new settings.</source>
        <translation>Der Agent dieses PCs wird beendet und startet mit den neuen Einstellungen wieder.</translation>
    </message>
    <message>
        <source>&amp;Restart now</source>
        <translation>Jetzt neu &amp;starten</translation>
    </message>
    <message>
        <source>&amp;Later</source>
        <translation>Spä&amp;ter</translation>
    </message>
    <message>
        <source>It coordinates the fleet: answers that are being written break off, and nobody gets one until it is back, usually within a minute.</source>
        <translation>Er koordiniert die Flotte: Laufende Antworten brechen ab, und niemand bekommt eine, bis er zurück ist, meist binnen einer Minute.</translation>
    </message>
    <message>
        <source>It is working for the fleet: answers that are being written stand still until other PCs have taken over.</source>
        <translation>Er arbeitet gerade für die Flotte: Laufende Antworten stehen still, bis andere PCs übernommen haben.</translation>
    </message>
    <message>
        <source>Nothing is under way here. It takes a few seconds.</source>
        <translation>Hier läuft gerade nichts. Es dauert ein paar Sekunden.</translation>
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
    <name>TextControl</name>
    <message>
        <source>for example {value}</source>
        <translation>zum Beispiel {value}</translation>
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
        <source>The fleet&apos;s programs take {held} of this PC&apos;s memory; {more} more are for it.</source>
        <translation>Die Programme der Flotte belegen {held} vom Speicher dieses PCs; weitere {more} sind für sie frei.</translation>
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
        <source>What this PC gives</source>
        <translation>Was dieser PC gibt</translation>
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
        <source>The PCs of a fleet run large AI models together. Join the one of your office with a code from its administrator, found one, or try it alone on this PC.</source>
        <translation>Die PCs einer Flotte betreiben gemeinsam große KI-Modelle. Treten Sie der Ihres Büros mit einem Code vom Administrator bei, gründen Sie eine, oder probieren Sie es allein auf diesem PC aus.</translation>
    </message>
    <message>
        <source>&amp;Set up…</source>
        <translation>&amp;Einrichten…</translation>
    </message>
    <message>
        <source>&amp;Join with a code…</source>
        <translation>Mit einem Code bei&amp;treten…</translation>
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
    <name>WayPage</name>
    <message>
        <source>What would you like to do?</source>
        <translation>Was möchten Sie tun?</translation>
    </message>
    <message>
        <source>&amp;Try it alone on this PC</source>
        <translation>&amp;Allein auf diesem PC ausprobieren</translation>
    </message>
    <message>
        <source>A small model answers on this PC. No other PC takes part, and others can join later.</source>
        <translation>Ein kleines Modell antwortet auf diesem PC. Kein anderer PC ist beteiligt, und andere können später dazukommen.</translation>
    </message>
    <message>
        <source>&amp;Join a fleet with a code</source>
        <translation>Einer Flotte mit einem &amp;Code beitreten</translation>
    </message>
    <message>
        <source>Your administrator has given you a code that begins with FLEET-.</source>
        <translation>Ihr Administrator hat Ihnen einen Code gegeben, der mit FLEET- beginnt.</translation>
    </message>
    <message>
        <source>&amp;Create a fleet</source>
        <translation>Eine Flotte &amp;erstellen</translation>
    </message>
    <message>
        <source>This PC becomes the coordinator: it lets other PCs in, plans their work, and must be on for the fleet to answer.</source>
        <translation>Dieser PC wird zum Koordinator: Er nimmt andere PCs auf, plant ihre Arbeit und muss eingeschaltet sein, damit die Flotte antwortet.</translation>
    </message>
    <message>
        <source>Model file: {path}</source>
        <translation>Modelldatei: {path}</translation>
    </message>
    <message>
        <source>The model is chosen in a moment.</source>
        <translation>Das Modell wird gleich gewählt.</translation>
    </message>
    <message>
        <source>Model: {title}. It is here already.</source>
        <translation>Modell: {title}. Es ist schon hier.</translation>
    </message>
    <message>
        <source>Model: {title}. {size} are downloaded.</source>
        <translation>Modell: {title}. {size} werden heruntergeladen.</translation>
    </message>
    <message>
        <source>Choose a &amp;file instead…</source>
        <translation>Stattdessen eine &amp;Datei wählen…</translation>
    </message>
    <message>
        <source>&amp;Download one after all</source>
        <translation>Doch eines &amp;herunterladen</translation>
    </message>
    <message>
        <source>only if it is not found by itself</source>
        <translation>nur, falls er nicht von selbst gefunden wird</translation>
    </message>
    <message>
        <source>Join c&amp;ode</source>
        <translation>&amp;Beitrittscode</translation>
    </message>
    <message>
        <source>Coordinator &amp;address (host:port)</source>
        <translation>A&amp;dresse des Koordinators (Host:Port)</translation>
    </message>
    <message>
        <source>for example: Office</source>
        <translation>zum Beispiel: Büro</translation>
    </message>
    <message>
        <source>&amp;Name of the fleet</source>
        <translation>&amp;Name der Flotte</translation>
    </message>
</context>
<context>
    <name>WelcomePage</name>
    <message>
        <source>Welcome to fleetapp</source>
        <translation>Willkommen bei fleetapp</translation>
    </message>
    <message>
        <source>The PCs of an office answer questions together: each holds a part of a large language model, and no cloud takes part. This takes two minutes, and nothing is changed before the last page.</source>
        <translation>Die PCs eines Büros beantworten Fragen gemeinsam: Jeder hält einen Teil eines großen Sprachmodells, und keine Cloud ist beteiligt. Das Einrichten dauert zwei Minuten, und vor der letzten Seite wird nichts geändert.</translation>
    </message>
    <message>
        <source>What is shared, and what is not</source>
        <translation>Was geteilt wird und was nicht</translation>
    </message>
    <message>
        <source>A PC that holds a part of a model computes on numbers (activations) that come from other people&apos;s text, and the PC with the first part sees the words themselves, as token ids. Somebody with full control of such a PC could read them. fleetapp writes none of it down. It reads no files of yours; your chats are stored on your own PC only.</source>
        <translation>Ein PC, der einen Teil eines Modells hält, rechnet mit Zahlen (Aktivierungen), die aus Texten anderer stammen, und der PC mit dem ersten Teil sieht die Wörter selbst, als Token-Nummern. Wer einen solchen PC ganz in der Hand hat, könnte sie lesen. fleetapp schreibt nichts davon auf. Es liest keine Ihrer Dateien; Ihre Chats werden nur auf Ihrem eigenen PC gespeichert.</translation>
    </message>
    <message>
        <source>It stays your PC</source>
        <translation>Es bleibt Ihr PC</translation>
    </message>
    <message>
        <source>Nothing is computed for others before you, or a policy of your organisation, say so. Then this PC helps while you do not need it, gives way when you come back, and can be paused from its icon unless a policy forbids that.</source>
        <translation>Nichts wird für andere berechnet, bevor Sie oder eine Richtlinie Ihrer Organisation es sagen. Dann hilft dieser PC, solange Sie ihn nicht brauchen, macht Platz, wenn Sie zurückkommen, und kann über sein Symbol pausiert werden, wenn keine Richtlinie das verbietet.</translation>
    </message>
</context>
<context>
    <name>Words</name>
    <message>
        <source>Starting</source>
        <translation>Startet</translation>
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
        <source>Removed from the fleet</source>
        <translation>Aus der Flotte entfernt</translation>
    </message>
    <message>
        <source>Finishing</source>
        <translation>Wird fertig</translation>
    </message>
    <message>
        <source>Standing by</source>
        <translation>In Bereitschaft</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>Pause</translation>
    </message>
    <message>
        <source>Off by policy</source>
        <translation>Durch Richtlinie aus</translation>
    </message>
    <message>
        <source>Agent not running</source>
        <translation>Agent läuft nicht</translation>
    </message>
    <message>
        <source>{doing} {percent}%</source>
        <translation>{doing} {percent} %</translation>
    </message>
    <message>
        <source>{what} (managed by {policy})</source>
        <translation>{what} (verwaltet durch {policy})</translation>
    </message>
    <message>
        <source>the settings</source>
        <translation>die Einstellungen</translation>
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
    <name>Work</name>
    <message>
        <source>You have stopped this.</source>
        <translation>Sie haben das angehalten.</translation>
    </message>
    <message>
        <source>Only this PC</source>
        <translation>Nur dieser PC</translation>
    </message>
    <message>
        <source>No model is known by name.</source>
        <translation>Kein Modell ist dem Namen nach bekannt.</translation>
    </message>
    <message>
        <source>Choose a model file instead.</source>
        <translation>Wählen Sie stattdessen eine Modelldatei.</translation>
    </message>
    <message>
        <source>This was stopped.</source>
        <translation>Das wurde angehalten.</translation>
    </message>
    <message>
        <source>The agent has forgotten this work.</source>
        <translation>Der Agent hat diese Arbeit vergessen.</translation>
    </message>
    <message>
        <source>Try again.</source>
        <translation>Versuchen Sie es noch einmal.</translation>
    </message>
    <message>
        <source>The model does not start. {why}</source>
        <translation>Das Modell startet nicht. {why}</translation>
    </message>
</context>
<context>
    <name>WorkPage</name>
    <message>
        <source>Setting up</source>
        <translation>Wird eingerichtet</translation>
    </message>
    <message>
        <source>What is done</source>
        <translation>Was getan wird</translation>
    </message>
    <message>
        <source>&amp;Stop</source>
        <translation>St&amp;opp</translation>
    </message>
    <message>
        <source>Try &amp;again</source>
        <translation>&amp;Noch einmal versuchen</translation>
    </message>
    <message>
        <source>Choose a &amp;model file…</source>
        <translation>&amp;Modelldatei wählen…</translation>
    </message>
    <message>
        <source>Id of this PC</source>
        <translation>ID dieses PCs</translation>
    </message>
    <message>
        <source>Join code</source>
        <translation>Beitrittscode</translation>
    </message>
    <message>
        <source>&amp;Open the chat</source>
        <translation>&amp;Chat öffnen</translation>
    </message>
    <message>
        <source>The agent on this PC is starting.</source>
        <translation>Der Agent auf diesem PC startet gerade.</translation>
    </message>
    <message>
        <source>An administrator has to let this PC in. Read them this id, so that they let in the right one. You may close this window; it goes on.</source>
        <translation>Ein Administrator muss diesen PC aufnehmen. Lesen Sie ihm diese ID vor, damit er den richtigen aufnimmt. Sie können dieses Fenster schließen; es geht weiter.</translation>
    </message>
    <message>
        <source>Everything is ready. Ask something!</source>
        <translation>Alles ist bereit. Fragen Sie etwas!</translation>
    </message>
    <message>
        <source>The fleet “{name}” is founded. Enter this code on each PC that should join; it is shown this once, and the menu makes more.</source>
        <translation>Die Flotte „{name}“ ist gegründet. Geben Sie diesen Code auf jedem PC ein, der beitreten soll; er wird nur dieses eine Mal angezeigt, weitere gibt es im Menü.</translation>
    </message>
    <message>
        <source>This PC is now part of “{name}”.</source>
        <translation>Dieser PC gehört jetzt zu „{name}“.</translation>
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
