"""A runner as a process: its pipes, its end, and whole rings of them over the fake executor."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from fleetapp.bench.runners import Member
from fleetapp.engine import pipe
from fleetapp.fleet.certificates import hostname_of, load_pem, pem_of
from tests.support.fake_executor import reference, split
from tests.support.fake_runner import MODEL, stage_folder
from tests.support.fleet import TestFleet, shown_at
from tests.support.runner_client import RunnerClient, RunnerRing, load_message

MODULE = "tests.support.fake_runner"


def environment(**wishes: Any) -> dict[str, str]:
    return {**os.environ, "FAKE_RUNNER": json.dumps(wishes)}


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Iterator[RunnerClient]:
    made = RunnerClient(MODULE, environment(**getattr(request, "param", {})))
    yield made
    if made.process.poll() is None:
        made.close()


def load_of(tmp_path: Path, start: int = 0, stop: int = 6, **other: Any) -> pipe.Load:
    folder = stage_folder(tmp_path / f"stage{start}", start, stop)
    member = TestFleet(tmp_path / "fleet").enrol("node")
    return load_message(member, folder, head=start == 0, **other)


def test_a_runner_verifies_loads_and_ends_with_its_stdin(
    client: RunnerClient, tmp_path: Path
) -> None:
    client.send(load_of(tmp_path))
    loaded = client.expect(pipe.Loaded)
    assert loaded.port > 0
    assert (loaded.block_size, loaded.blocks, loaded.max_context) == (8, 256, 256)
    phases = [m.phase for m in client.messages if isinstance(m, pipe.Progress)]
    assert phases[0] == "verifying"
    assert phases[-1] == "compiling"
    assert client.close() == 0


@pytest.mark.parametrize("client", [{"compile_seconds": 60}], indirect=True)
def test_it_ends_at_once_even_while_compiling(client: RunnerClient, tmp_path: Path) -> None:
    client.send(load_of(tmp_path))
    client.expect(pipe.Progress, phase="compiling")
    started = time.monotonic()
    assert client.close() == 0
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("client", [{"step_seconds": 60}], indirect=True)
def test_it_ends_at_once_even_while_inferring(client: RunnerClient, tmp_path: Path) -> None:
    client.send(load_of(tmp_path))
    client.expect(pipe.Loaded)
    client.send(pipe.Link("c", 1, 0, 1, MODEL, 0, None, None, 256, 8))
    client.expect(pipe.Linked)
    client.ask(pipe.Generate("r", pipe.SamplingParams(max_tokens=3), prompt="hello"))
    client.wait(lambda: client.answers["r"].started)
    started = time.monotonic()
    assert client.close() == 0
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("client", [{"print": True}], indirect=True)
def test_what_native_code_prints_does_not_reach_the_pipe(
    client: RunnerClient, tmp_path: Path
) -> None:
    client.send(load_of(tmp_path))
    client.expect(pipe.Loaded)
    client.close()
    assert client.garbage == b""
    assert "printed by native code" in client.stderr
    assert "printed by python" in client.stderr


def test_a_shard_with_one_flipped_bit_is_refused_before_anything_is_loaded(
    client: RunnerClient, tmp_path: Path
) -> None:
    load = load_of(tmp_path)
    weights = Path(load.stage_dir) / "stage.bin"
    data = bytearray(weights.read_bytes())
    data[100] ^= 1
    weights.write_bytes(data)
    client.send(load)
    failed = client.expect(pipe.Failed)
    assert failed.code == "hash_mismatch"
    assert "stage.bin" in failed.message
    assert failed.remedy
    assert not [m for m in client.messages if getattr(m, "phase", "") == "compiling"]
    assert client.ended() != 0


@pytest.mark.parametrize("damage", ["missing manifest", "no manifest", "missing file", "escape"])
def test_a_folder_that_is_no_shard_is_refused(
    client: RunnerClient, tmp_path: Path, damage: str
) -> None:
    load = load_of(tmp_path)
    folder = Path(load.stage_dir)
    manifest = folder / "stage.json"
    if damage == "missing manifest":
        manifest.unlink()
    elif damage == "no manifest":
        manifest.write_text("{}")
    elif damage == "missing file":
        (folder / "stage.xml").unlink()
    else:
        manifest.write_text(manifest.read_text().replace('"stage.xml"', '"../x.xml"'))
    client.send(load)
    assert client.expect(pipe.Failed).code in ("corrupt_model", "hash_mismatch")
    assert client.ended() != 0


@pytest.mark.parametrize("data", [b"\x00\x00\x00\x05hello", b"GET / HTTP/1.1\r\n\r\n" * 4])
def test_garbage_from_the_agent_ends_it(client: RunnerClient, data: bytes) -> None:
    client.send_raw(data)
    assert client.ended() != 0
    assert client.messages == []


def test_a_first_message_that_is_not_load_is_refused(client: RunnerClient) -> None:
    client.send(pipe.QueryStats())
    assert client.expect(pipe.Failed).code == "malformed"
    assert client.ended() != 0


def test_certificates_that_cannot_be_read_are_named(client: RunnerClient, tmp_path: Path) -> None:
    load = load_of(tmp_path)
    Path(load.cert_path).write_text("nonsense")
    client.send(load)
    assert client.expect(pipe.Failed).code == "not_a_member"
    assert client.ended() != 0


@pytest.mark.parametrize("client", [{"explode": "no such device"}], indirect=True)
def test_whatever_loading_throws_is_told_to_the_agent(client: RunnerClient, tmp_path: Path) -> None:
    client.send(load_of(tmp_path))
    failed = client.expect(pipe.Failed)
    assert failed.code == "runner_failed"
    assert "no such device" in failed.message
    assert client.ended() != 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a console of its own")
def test_an_interrupt_from_the_terminal_is_left_to_the_agent(
    client: RunnerClient, tmp_path: Path
) -> None:
    client.send(load_of(tmp_path))
    client.expect(pipe.Loaded)
    client.process.send_signal(signal.SIGINT)
    assert client.stats().open_slots == 0
    assert client.close() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="niceness is Linux's word for it")
def test_it_runs_at_lower_priority(client: RunnerClient, tmp_path: Path) -> None:
    client.send(load_of(tmp_path))
    client.expect(pipe.Loaded)
    assert os.getpriority(os.PRIO_PROCESS, client.process.pid) > os.getpriority(os.PRIO_PROCESS, 0)


# -- rings -------------------------------------------------------------------------------------


def ring_of(
    root: Path, stages: int, wishes: dict[str, Any] | None = None, **load: Any
) -> RunnerRing:
    cuts = split(stages)
    folders = [stage_folder(root / f"stage{a}", a, b) for a, b in cuts]
    return RunnerRing(
        root / "fleet",
        folders,
        [a for a, _ in cuts],
        MODEL,
        module=MODULE,
        env=environment(**(wishes or {})),
        **load,
    )


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_a_ring_of_processes_answers_like_the_whole_model(tmp_path: Path, stages: int) -> None:
    with ring_of(tmp_path, stages) as ring:
        ring.link()
        ids = [ring.begin(f"question {i}", max_tokens=30) for i in range(10)]
        for i, request_id in enumerate(ids):
            answer = ring.head.answer(request_id)
            assert answer.ids == reference(list(f"question {i}".encode()), 30)
            assert answer.text == bytes(answer.ids).decode()
            assert answer.finished is not None
            assert answer.finished.timings is not None
            assert answer.finished.timings.first_token > 0
        ring.assert_clean()


def test_an_answer_goes_on_when_a_killed_stage_has_been_replaced(tmp_path: Path) -> None:
    with ring_of(tmp_path, 3, {"step_seconds": 0.01}) as ring:
        ring.link()
        request_id = ring.begin("question", max_tokens=60)
        answer = ring.head.answers[request_id]
        ring.head.wait(lambda: answer.deltas or None)
        ring.runners[1].process.kill()
        device = ring.members[1].identity.device_id
        assert ring.head.expect(pipe.ChainFault, 5).device == device
        late = ring.begin("anyone?", max_tokens=9)
        ring.restart(1)
        ring.link()
        assert ring.head.answer(request_id).ids == reference(list(b"question"), 60)
        assert answer.text == bytes(answer.ids).decode()
        assert ring.head.answer(late).ids == reference(list(b"anyone?"), 9)
        ring.assert_clean()


def test_an_answer_that_nobody_goes_on_with_ends_with_a_typed_error_in_time(tmp_path: Path) -> None:
    with ring_of(tmp_path, 2, {"step_seconds": 0.01}, hold_seconds=1.0) as ring:
        ring.link()
        request_id = ring.begin("question", max_tokens=200)
        answer = ring.head.answers[request_id]
        ring.head.wait(lambda: answer.deltas or None)
        ring.runners[1].process.kill()
        killed = time.monotonic()
        finished = ring.head.answer(request_id, 10).finished
        assert 1 <= time.monotonic() - killed < 5
        assert finished is not None
        assert (finished.reason, finished.code) == ("error", "chain_broken")
        assert ring.members[1].identity.device_id in finished.message
        assert finished.remedy


def signalled(ring: RunnerRing, index: int, signal_: int) -> None:
    ring.runners[index].process.send_signal(signal_)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
@pytest.mark.parametrize(
    ("frozen", "busy"), [pytest.param(2, False, marks=pytest.mark.slow), (1, True)]
)
def test_a_frozen_stage_is_named_whether_it_owes_an_answer_or_not(
    tmp_path: Path, frozen: int, busy: bool
) -> None:
    with ring_of(tmp_path, 3, {"step_seconds": 0.01}, silence=2.0) as ring:
        ring.link()
        device = ring.members[frozen].identity.device_id
        request_id = ring.begin("question", max_tokens=60) if busy else ""
        if busy:
            answer = ring.head.answers[request_id]
            ring.head.wait(lambda: answer.deltas or None)
        signalled(ring, frozen, signal.SIGSTOP)
        stopped = time.monotonic()
        assert ring.head.expect(pipe.ChainFault, 5).device == device
        assert time.monotonic() - stopped <= 2.5
        other = ring.runners[3 - frozen]
        assert other.expect(pipe.ChainFault, 5).device == device
        signalled(ring, frozen, signal.SIGCONT)
        fault = ring.runners[frozen].expect(pipe.ChainFault, 5)
        assert fault.device == device, "it knows that it stood still"
        ring.link()
        if busy:
            assert ring.head.answer(request_id).ids == reference(list(b"question"), 60)
        ring.assert_clean()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
def test_a_frozen_head_is_named_by_the_stage_behind_it(tmp_path: Path) -> None:
    with ring_of(tmp_path, 2, silence=1.5) as ring:
        ring.link()
        signalled(ring, 0, signal.SIGSTOP)
        fault = ring.runners[1].expect(pipe.ChainFault, 5)
        assert (fault.stage, fault.device) == (0, ring.members[0].identity.device_id)
        signalled(ring, 0, signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
def test_a_short_pause_of_a_process_evicts_nobody(tmp_path: Path) -> None:
    with ring_of(tmp_path, 3, {"step_seconds": 0.01}, silence=2.0) as ring:
        ring.link()
        request_id = ring.begin("question", max_tokens=60)
        answer = ring.head.answers[request_id]
        for index in range(3):
            more = len(answer.ids) + 5
            ring.head.wait(lambda n=more: len(answer.ids) >= n or None)  # type: ignore[misc]
            signalled(ring, index, signal.SIGSTOP)
            time.sleep(0.9)  # the pause is the test
            signalled(ring, index, signal.SIGCONT)
        assert ring.head.answer(request_id).ids == reference(list(b"question"), 60)
        assert not [m for r in ring.runners for m in r.messages if isinstance(m, pipe.ChainFault)]


@pytest.mark.slow
def test_a_step_that_takes_longer_than_silence_may_last_is_no_silence(tmp_path: Path) -> None:
    with ring_of(tmp_path, 2, {"step_seconds": 2.2}, silence=2.0) as ring:
        ring.link()
        request_id = ring.begin("question", max_tokens=1)
        assert ring.head.answer(request_id).ids == reference(list(b"question"), 1)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP")
def test_a_stage_that_hangs_is_noticed_within_the_step_deadline(tmp_path: Path) -> None:
    with ring_of(tmp_path, 3, step_deadline=1.5) as ring:
        ring.link()
        ring.runners[1].process.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        request_id = ring.begin("question", max_tokens=5)
        assert ring.head.expect(pipe.ChainFault, 15).code == "stage_silent"
        assert 1 < time.monotonic() - stopped < 5
        ring.runners[1].process.send_signal(signal.SIGCONT)
        ring.link()
        assert ring.head.answer(request_id).ids == reference(list(b"question"), 5)
        ring.assert_clean()


def test_an_idle_ring_notices_a_killed_stage(tmp_path: Path) -> None:
    with ring_of(tmp_path, 3) as ring:
        ring.link()
        ring.runners[2].process.kill()
        assert ring.head.expect(pipe.ChainFault, 8).epoch == 1


def test_a_crash_in_native_code_takes_one_process_only(tmp_path: Path) -> None:
    with ring_of(tmp_path, 2, {"crash": True}) as ring:
        ring.link()
        request_id = ring.begin("question", max_tokens=5)
        ring.head.process.wait(10)
        assert ring.head.answers[request_id].finished is None
        assert ring.runners[1].expect(pipe.ChainFault).stage == 0
        assert ring.runners[1].process.poll() is None


def test_unlink_and_link_again(tmp_path: Path) -> None:
    with ring_of(tmp_path, 2) as ring:
        ring.link()
        for runner in ring.runners:
            runner.send(pipe.Unlink())
        request_id = ring.begin("question", max_tokens=5)
        finished = ring.head.answer(request_id).finished
        assert finished is not None
        assert finished.code == "unavailable"
        ring.link()
        again = ring.begin("question", max_tokens=5)
        assert ring.head.answer(again).ids == reference(list(b"question"), 5)


def shown(ring: RunnerRing, index: int) -> x509.Certificate:
    """The certificate that one of the runners shows."""
    member = ring.members[index]
    hostname = hostname_of(member.identity.device_id, member.fleet_id)
    return asyncio.run(shown_at(member.authority.read_bytes(), hostname, ring.loaded[index].port))


def issued(member: Member) -> bytes:
    """A new leaf for the same key."""
    assert member.issue is not None
    return member.issue()


def test_a_renewed_certificate_is_shown_without_a_restart(tmp_path: Path) -> None:
    with ring_of(tmp_path, 2) as ring:
        ring.link()
        member, runner = ring.members[1], ring.runners[1]
        old, fresh = load_pem(member.leaf.read_bytes()), load_pem(issued(member))
        member.leaf.write_bytes(pem_of(fresh))
        assert shown(ring, 1) == old
        runner.send(pipe.Renew())
        runner.stats()  # answered in order: the message has been heard
        assert shown(ring, 1) == fresh
        # The present connections are as good as they were, and new ones stand in both directions.
        request_id = ring.begin("question", max_tokens=5)
        assert ring.head.answer(request_id).ids == reference(list(b"question"), 5)
        ring.link()
        again = ring.begin("question", max_tokens=5)
        assert ring.head.answer(again).ids == reference(list(b"question"), 5)


def test_a_certificate_that_cannot_be_read_leaves_the_old_one(tmp_path: Path) -> None:
    with ring_of(tmp_path, 2) as ring:
        member, runner = ring.members[1], ring.runners[1]
        old = load_pem(member.leaf.read_bytes())
        member.leaf.write_text("nothing")
        runner.send(pipe.Renew())
        runner.stats()
        assert shown(ring, 1) == old
        ring.link()
