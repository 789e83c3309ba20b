"""A claim about security without a test behind it is no claim."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def test_every_test_that_the_threat_page_names_is_there() -> None:
    text = (ROOT / "docs" / "threats.md").read_text("utf-8")
    named = NAMED.findall(text)
    assert len(named) > 50
    for file, test in named:
        source = (ROOT / "tests" / file).read_text("utf-8")
        assert re.search(rf"^(async )?def {test}\(", source, re.MULTILINE), f"{file}::{test}"


def test_every_claim_names_one() -> None:
    text = (ROOT / "docs" / "threats.md").read_text("utf-8")
    defended = text[: text.index("## Not defended")]
    rows = [line for line in defended.splitlines() if line.startswith("| ")]
    claims = [row for row in rows if not row.startswith("| what ")]
    assert claims
    assert [row for row in claims if not NAMED.search(row)] == []
