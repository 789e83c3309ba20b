import asyncio
import json
import os
import threading
from collections.abc import Coroutine
from pathlib import Path

import msgspec
import pytest

from fleetapp.cli import client, waiting
from fleetapp.errors import AgentNotRunning, NoHub, Unauthorized
from fleetapp.platform.lock import InstanceLock
from fleetapp.platform.paths import Paths
from fleetapp.platform.units import counted
from fleetapp.types import AssignmentView, AuditCheck, ContributionView, LayerRange, Phase
from tests.support.cli import Run
from tests.support.fake_agent import CODE, FakeAgent


@pytest.mark.parametrize(
    ("args", "asked", "shown"),
    [
        (("status",), ("status",), "Ready; nothing to do."),
        (("contribute", "on"), ("contribute", True), "may use this PC"),
        (("contribute", "off"), ("contribute", False), "does not use this PC"),
        (("contribute",), ("status",), "does not use this PC"),
        (("pause",), ("pause", "forever", False), "Paused until 14:30."),
        (("pause", "30m", "--finish-first"), ("pause", "30m", True), "Paused until 14:30."),
        (("pause", "tomorrow", "--json"), ("pause", "tomorrow", False), '"reason": "paused"'),
        (("resume",), ("resume",), "Works again."),
        (("fleet", "create", "Büro"), ("create", "Büro"), CODE),
        (("fleet", "join", CODE), ("join", CODE, ""), "in the fleet 'Büro'"),
        (("fleet", "join", "fleet", "abcd", "EFGH", "--hub", "h:1"),
         ("join", "fleet abcd EFGH", "h:1"), "in the fleet"),
        (("fleet", "leave", "--yes"), ("leave",), "has left"),
        (("fleet", "status"), ("fleet",), "2 PCs, 1 online, 1 contributing"),
        (("fleet", "nodes"), ("fleet",), "José 測試"),
        (("fleet", "nodes"), ("fleet",), "pending"),
        (("fleet", "plan"), ("plan",), "José 測試 layers"),
        (("fleet", "plan", "--what-if", "+16", "--what-if", "users=9"),
         ("plan", "+16", "users=9"), "Predicted:"),
        (("fleet", "codes"), ("codes",), "revoked"),
        (("fleet", "codes", "list"), ("codes",), "revoked"),
        (("fleet", "codes", "new", "--hours", "2", "--uses", "3", "--approve"),
         ("make_code", 2.0, 3, True), CODE),
        (("fleet", "codes", "revoke", "id1"), ("revoke_code", "id1"), "revoked"),
        (
            ("keys", "new", "editor", "--parallel", "2", "--per-minute", "30"),
            ("make_key", "editor", 2, 30),
            "fleet-secret",
        ),
        (("keys",), ("keys",), "Id"),
        (("serve", "tiny"), ("start", "tiny", None, 0, "auto"), "Fits on DESK-1 alone."),
        (("serve", "tiny", "--precision", "exact", "--stages", "3"),
         ("start", "tiny", "exact", 3, "auto"), "live"),
        (("unserve", "tiny"), ("stop", "tiny"), "no longer"),
        (("quit",), ("quit",), "ends"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("running")
def test_each_command_asks_the_agent(
    run: Run, agent: FakeAgent, args: tuple[str, ...], asked: tuple, shown: str
) -> None:
    code, out, err = run(*args)
    assert code == 0, err
    assert agent.asked[0] == asked
    assert shown in out


@pytest.mark.parametrize(
    "args",
    [
        ("status",),
        ("fleet", "status"),
        ("fleet", "nodes"),
        ("fleet", "plan"),
        ("fleet", "codes", "list"),
        ("fleet", "codes", "new"),
        ("fleet", "create", "x"),
        ("fleet", "join", CODE),
        ("keys", "list"),
        ("keys",),
        ("fleet", "codes"),
        ("settings",),
        ("serve", "tiny"),
        ("contribute",),
        ("settings", "list"),
        ("settings", "get", "threads"),
    ],
)
@pytest.mark.usefixtures("running")
def test_json_is_one_document(run: Run, args: tuple[str, ...]) -> None:
    code, out, err = run(*args, "--json")
    assert (code, err) == (0, "")
    json.loads(out)


@pytest.mark.usefixtures("running")
def test_what_needs_attention_comes_before_the_chains(run: Run) -> None:
    out = run("fleet", "status")[1]
    assert out.index("! José 測試 is offline, last heard 5 min ago.") < out.index(
        "tiny (fast): live"
    )


@pytest.mark.usefixtures("running")
def test_errors_of_the_agent_keep_their_exit_code(run: Run, agent: FakeAgent) -> None:
    code, out, err = run("fleet", "join", "wrong")
    assert (code, out) == (6, "")
    assert err == (
        "Looking for the coordinator…\n"
        "Error: This is not a join code.\n"
        "  Check it character by character or ask the admin for a new one.\n"
    )
    agent.refuse = NoHub("The coordinator\x1b[2J is away.\nReally.")
    code, _, err = run("fleet", "status")
    assert (code, err) == (8, "Error: The coordinator␛[2J is away. Really.\n")


@pytest.mark.usefixtures("running")
def test_leaving_asks_first(run: Run, agent: FakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.confirm", lambda *_a, **_k: (_ for _ in ()).throw(KeyboardInterrupt))
    assert run("fleet", "leave")[0] == 130
    assert agent.asked == []


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("agent.json", None),
        ("agent.json", b""),
        ("agent.json", b'{"pid": 1}'),
        ("agent.json", b'{"pid": 4194303999, "port": 5}'),
        ("agent.json", b'{"pid": 1, "port": 99999}'),
        ("api-token", None),
        ("api-token", b""),
        ("api-token", b"\xff\xfe"),
    ],
)
@pytest.mark.usefixtures("running")
def test_files_of_a_dead_agent_count_for_nothing(
    run: Run, home: Path, file: str, content: bytes | None
) -> None:
    if content is None:
        (home / file).unlink()
    else:
        (home / file).write_bytes(content)
    code, _, err = run("status")
    assert code == AgentNotRunning.exit_code
    assert "not running" in err
    assert "'fleetapp agent'" in err


@pytest.mark.usefixtures("running")
def test_a_port_that_nobody_listens_on_means_not_running(
    run: Run, home: Path, unused_tcp_port: int
) -> None:
    (home / "agent.json").write_text(f'{{"pid": {os.getpid()}, "port": {unused_tcp_port}}}')
    code, _, err = run("status")
    assert code == AgentNotRunning.exit_code
    assert "not running" in err


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, b'{"error": {"message": "no", "code": "invalid_api_key"}}', "Unauthorized"),
        (404, b"<html>", "NotFound"),
        (400, b'{"error": {"message": "no", "code": "context_length_exceeded"}}', "ContextTooLong"),
        (429, b'{"error": {"message": "slow", "code": "rate"}}', "FleetUnavailable"),
        (500, b'{"error": "text"}', "FleetUnavailable"),
        (502, b"", "FleetUnavailable"),
        (418, b"[]", "UserError"),
        (500, b'{"error": {"message": "x", "code": "internal"}}', "FleetError"),
    ],
)
def test_errors_of_any_server_get_a_class(status: int, body: bytes, kind: str) -> None:
    assert type(client.error_of(status, body)).__name__ == kind


def test_a_wrong_token_is_said(run: Run, home: Path, running: str) -> None:
    (home / "api-token").write_text("another-token")
    code, _, err = run("status")
    assert code == Unauthorized.exit_code
    assert "token" in err


@pytest.mark.usefixtures("running")
def test_a_trace_is_written_where_it_was_asked_for(
    run: Run, agent: FakeAgent, tmp_path: Path
) -> None:
    file = tmp_path / "steps.json"
    code, out, err = run("trace", str(file), "--model", "tiny")
    assert code == 0, err
    assert agent.asked[0] == ("trace", "tiny")
    assert "1 step of tiny" in out
    events = json.loads(file.read_text())["traceEvents"]
    assert {e["args"]["name"] for e in events if e["ph"] == "M"} == {
        "steps in flight",
        "stage 0 (anna)",
        "stage 1 (ben)",
    }


@pytest.mark.usefixtures("running")
def test_a_trace_that_cannot_be_written_is_an_error_with_a_reason(run: Run, tmp_path: Path) -> None:
    code, _, err = run("trace", str(tmp_path / "no such folder" / "steps.json"))
    assert code != 0
    assert "cannot be written" in err


def test_an_agent_that_is_just_starting_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "APPEAR_SECONDS", 0.2)
    paths = Paths(tmp_path)
    with InstanceLock(paths.lock_file):

        def answers() -> None:
            paths.api_token.write_text("secret", "ascii")
            paths.agent_file.write_text(json.dumps({"pid": os.getpid(), "port": 4711}))

        timer = threading.Timer(0.6, answers)
        timer.start()
        found, token = client.await_agent(tmp_path)
        timer.join()
    assert (found.port, token) == (4711, "secret")


def test_an_agent_that_never_gets_ready_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "APPEAR_SECONDS", 0.0)
    monkeypatch.setattr(client, "START_SECONDS", 0.3)
    with InstanceLock(Paths(tmp_path).lock_file), pytest.raises(AgentNotRunning):
        client.await_agent(tmp_path)
    with pytest.raises(AgentNotRunning):
        client.await_agent(tmp_path / "nobody")


@pytest.mark.usefixtures("running")
def test_joining_is_not_silent(run: Run) -> None:
    assert run("fleet", "join", CODE)[2] == "Looking for the coordinator…\n"
    assert run("fleet", "join", CODE, "--hub", "h:1")[2] == "Asking h:1…\n"
    assert run("fleet", "join", CODE, "--json")[2] == ""


@pytest.mark.usefixtures("running")
def test_leaving_says_why_it_takes_long(
    run: Run, agent: FakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("fleet", "leave", "--yes")[2] == ""
    monkeypatch.setattr(waiting, "PATIENCE", 0.1)

    async def long() -> None:
        await asyncio.sleep(0.5)

    monkeypatch.setattr(agent, "leave", long)
    code, _, err = run("fleet", "leave", "--yes")
    assert (code, err) == (0, "Leaving; the coordinator is told, if it can be reached…\n")


@pytest.mark.usefixtures("running")
def test_a_removed_pc_is_not_said_to_work_for_the_fleet(run: Run, agent: FakeAgent) -> None:
    agent.state = msgspec.structs.replace(
        agent.state,
        state="connecting",
        reason="The coordinator does not count this PC as a member any more. Leave it.",
        contribute=True,
        removed=True,
        contribution=ContributionView(
            on=True, reason="contributing", sentence="This PC works for the fleet when it is asked."
        ),
    )
    out = run("status")[1]
    assert "works for the fleet" not in out
    assert "Contribute:  on: This PC does nothing for the fleet" in out
    out = run("contribute")[1]
    assert out == f"The fleet does not use this PC. {agent.state.reason}\n"


@pytest.mark.parametrize(
    ("phase", "shown"),
    [("downloading", True), ("verifying", True), ("compiling", False), ("loading", False)],
)
@pytest.mark.usefixtures("running")
def test_bytes_are_shown_while_bytes_come(
    run: Run, agent: FakeAgent, phase: Phase, shown: bool
) -> None:
    part = AssignmentView(
        "dev1", "DESK-1", "tiny", 0, 1, LayerRange(0, 30), phase, done=0, total=56 * 2**20
    )
    agent.state = msgspec.structs.replace(agent.state, assignments=(part,))
    assert ("0 B of 56.0 MiB" in run("status")[1]) is shown


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("keys", "new", "x", "--per-minute", "-5"), "'--per-minute': -5 is not in the range"),
        (("keys", "new", "x", "--parallel", "100001"), "'--parallel': 100001 is not in"),
        (("ask", "x", "--temperature", "-4"), "'--temperature': -4.0 is not in the range 0<=x<=2"),
        (("ask", "x", "--max-tokens", "0"), "'--max-tokens': 0 is not in the range x>=1"),
        (("ask", "x", "--top-p", "1.5"), "'--top-p': 1.5 is not in the range 0<=x<=1"),
    ],
)
@pytest.mark.usefixtures("running")
def test_a_number_out_of_range_is_refused_with_the_range(
    run: Run, agent: FakeAgent, args: tuple[str, ...], said: str
) -> None:
    code, _, err = run(*args)
    assert (code, agent.asked) == (2, [])
    assert said in err


def test_the_help_of_a_new_key_says_what_no_limit_is(run: Run) -> None:
    out = " ".join(run("keys", "new", "--help")[1].split())
    assert out.count("0 means any number. [default: 0;") == 2


@pytest.mark.usefixtures("running")
def test_one_is_not_said_in_the_plural(
    run: Run, agent: FakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def verify(_noted: str) -> AuditCheck:
        return AuditCheck(1, 1, 1, "ab" * 32, ())

    monkeypatch.setattr(agent, "verify_audit", verify)
    assert run("fleet", "audit", "--verify")[1].startswith("1 entry, 1 to 1.")
    assert (counted(1, "PC"), counted(0, "PC"), counted(2, "PC")) == ("1 PC", "0 PCs", "2 PCs")


@pytest.mark.usefixtures("running")
def test_ctrl_c_just_as_a_wait_begins_is_no_fault(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    async def wait() -> None:
        begun.append("wait")

    def lost(work: Coroutine[None, None, None]) -> None:
        # asyncio.Runner, having reset its count of interrupts, cancels the task before it begins
        work.close()
        raise asyncio.CancelledError

    with client.agent_client(home) as asking:
        with monkeypatch.context() as early:
            early.setattr(asking._runner, "run", lost)
            with pytest.raises(KeyboardInterrupt):
                asking._run(wait(), began=True)
        assert begun == []
