import json
import logging
from pathlib import Path

import pytest

from fleetapp import logs
from fleetapp.errors import NoHub
from fleetapp.platform.paths import Paths


@pytest.fixture(autouse=True)
def _restore():
    root = logging.getLogger()
    level = root.level
    yield
    for handler in [h for h in root.handlers if h.get_name() == "fleetapp"]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)


@pytest.fixture
def lines(tmp_path: Path):
    path = logs.setup_logging(Paths(tmp_path / "José 測試"), "agent")

    def read() -> list[dict]:
        assert path is not None
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    return read


def fail(error: Exception) -> None:
    raise error


def test_a_record_is_one_json_object_with_its_fields(lines) -> None:
    logging.getLogger("fleetapp.x").warning("läuft\nnicht", extra={"port": 1, "who": ("a", "b")})
    (line,) = lines()
    assert (line["level"], line["logger"], line["message"]) == (
        "warning",
        "fleetapp.x",
        "läuft\nnicht",
    )
    assert (line["port"], line["who"]) == (1, "('a', 'b')")
    assert line["time"].endswith("+00:00")


def test_an_error_leaves_its_code_and_trace(lines) -> None:
    try:
        fail(NoHub("nobody there"))
    except NoHub:
        logging.getLogger("x").exception("failed")
    assert lines()[0]["error"] == "no_hub"
    assert "nobody there" in lines()[0]["trace"]


@pytest.mark.parametrize(
    "secret",
    [
        "FLEET-ABCDE-FGHJK-MNPQR-STVWX-YZ012-34567-89ABC-DEFGH-JKM",
        "fleet-abcdefghjkmnpqrstvwxyz0123456789abcdefghjkm",
        "FLEET ABCDE FGHJK MNPQR STVWX YZ012 34567 89ABC DEFGH JKM",
        "fleet-Zm9vYmFyYmF6cXV4_-Zm9vYmFyYmF6",
        "Authorization: Bearer abc.def",
        "-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGH",
    ],
)
def test_secrets_are_struck_out_wherever_they_stand(lines, secret: str) -> None:
    log = logging.getLogger("x")
    log.info("got %s here", secret)
    log.info("m", extra={"detail": secret})
    try:
        fail(RuntimeError(secret))
    except RuntimeError:
        log.exception("failed")
    text = json.dumps(lines())
    for part in ("JKM", "jkm", "Zm9v", "abc.def", "MIGH"):
        assert part not in text
    assert text.count("[struck out]") >= 3


def test_fields_that_name_content_are_struck_out_whatever_they_hold(lines) -> None:
    logging.getLogger("x").info("m", extra={"prompt": "hello", "Code": 5, "model": "smol"})
    assert lines()[0]["prompt"] == lines()[0]["Code"] == "[struck out]"
    assert lines()[0]["model"] == "smol"


def test_ordinary_sentences_stay_as_they_are() -> None:
    said = "The fleet lost one node, found three more, and goes on; see fleet-status."
    assert logs.strike(said) == said


def test_logs_do_not_grow_without_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_BYTES", 2000)
    logs.setup_logging(Paths(tmp_path), "agent")
    for number in range(200):
        logging.getLogger("x").info("line %d of some length", number)
    assert len(list((tmp_path / "logs").iterdir())) == 1 + logs.KEPT


def test_an_unwritable_folder_does_not_stop_the_process(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("in the way")
    assert logs.setup_logging(Paths(tmp_path), "agent") is None
    logging.getLogger("x").warning("goes to stderr")


def test_two_calls_do_not_write_every_line_twice(tmp_path: Path) -> None:
    logs.setup_logging(Paths(tmp_path), "agent")
    path = logs.setup_logging(Paths(tmp_path), "agent")
    logging.getLogger("x").info("once")
    assert path is not None
    assert len(path.read_text().splitlines()) == 1
