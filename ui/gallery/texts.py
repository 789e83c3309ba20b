"""What people and models say in the pictures, in the language of the moment."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QLocale


@dataclass(frozen=True)
class Texts:
    """One conversation, the titles of others, and what is searched for."""

    question: str
    answer: str
    second: str
    second_answer: str
    titles: tuple[str, ...]
    words: str
    """Occurs in the answer."""
    system: str
    draft: str


EN = Texts(
    question="Which of our meeting rooms is free on Tuesday at 10, and how do I read the list?",
    answer="""\
**Room Porto** is free. The list is a CSV file with one line for each booking, so this finds every
room that is free at a given hour:

```python
import csv

def free_rooms(path, day, hour):
    taken = set()
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if row["day"] == day and int(row["from"]) <= hour < int(row["to"]):
                taken.add(row["room"])  # booked at that hour
    return ROOMS - taken
```

| Room | Seats | Tuesday, 10:00 |
|---|---|---|
| Lisbon | 12 | taken until 11:30 |
| Porto | 6 | free |
| Faro | 4 | taken all day |

Book it early: *Porto* is the only one with a screen on that floor.
""",
    second="And with a screen, for eight people?",
    second_answer="For eight people only **Lisbon** is large enough. It is free from 11:30",
    titles=(
        "Summary of the supplier contract",
        "Translate the safety notice into Portuguese",
        "Regular expression for order numbers",
        "Agenda for the works council",
        "Why does the macro stop at row 65,536?",
    ),
    words="room",
    system="Answer briefly, in the tone of a helpful colleague.",
    draft="Then please write to the team that we meet in",
)

DE = Texts(
    question="Welcher Besprechungsraum ist am Dienstag um 10 Uhr frei, und wie lese ich die Liste?",
    answer="""\
**Raum Porto** ist frei. Die Liste ist eine CSV-Datei mit einer Zeile je Buchung; das findet jeden
Raum, der zu einer Stunde frei ist:

```python
import csv

def freie_raeume(pfad, tag, stunde):
    belegt = set()
    with open(pfad, newline="") as datei:
        for zeile in csv.DictReader(datei):
            if zeile["tag"] == tag and int(zeile["von"]) <= stunde < int(zeile["bis"]):
                belegt.add(zeile["raum"])  # zu dieser Stunde gebucht
    return RAEUME - belegt
```

| Raum | Plätze | Dienstag, 10:00 |
|---|---|---|
| Lissabon | 12 | belegt bis 11:30 |
| Porto | 6 | frei |
| Faro | 4 | ganztägig belegt |

Buchen Sie ihn früh: *Porto* hat als einziger auf dem Stockwerk einen Bildschirm.
""",
    second="Und mit Bildschirm, für acht Personen?",
    second_answer="Für acht Personen ist nur **Lissabon** groß genug. Frei ist er ab 11:30 Uhr",
    titles=(
        "Zusammenfassung des Lieferantenvertrags",
        "Sicherheitshinweis ins Portugiesische übersetzen",
        "Regulärer Ausdruck für Bestellnummern",
        "Tagesordnung für den Betriebsrat",
        "Warum hört das Makro bei Zeile 65.536 auf?",
    ),
    words="raum",
    system="Antworte kurz, im Ton eines hilfsbereiten Kollegen.",
    draft="Dann schreiben Sie dem Team bitte, dass wir uns treffen in",
)

HOSTILE = """\
<script>alert(1)</script> <img src="https://tracker.example/p.png"> ![a picture](file:///etc/passwd)

[Your bank](javascript:alert(1)) and [a look-alike](https://\u0430pple.com/login)

user\u202egnp.exe\u202c zero\u200bwidth 👨\u200d👩\u200d👧\u200d👦

```
an unclosed fence
"""


def texts() -> Texts:
    """Those of the default locale."""
    return DE if QLocale().language() == QLocale.Language.German else EN
