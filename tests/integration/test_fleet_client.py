"""A served fleet of three, as clients, strangers and eavesdroppers meet it."""

from __future__ import annotations

import gc
import json
import os
import random
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import psutil
import pytest

from tests.support.capture import Capture, is_tls, records_only
from tests.support.served import MODEL, Served

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]

QUESTION = "What is the capital of France?"
SECRET = "zanzibar-quokka-telescope"


@pytest.fixture(scope="module")
def fleet(library: Path) -> Iterator[Served]:
    with Served(3, "exact", library) as served:
        yield served


def chat(
    fleet: Served, content: str = QUESTION, **more: object
) -> openai.types.chat.ChatCompletion:
    return fleet.openai().chat.completions.create(  # type: ignore[call-overload,no-any-return]
        model=MODEL, messages=[{"role": "user", "content": content}], **more
    )


def test_the_official_client_gets_a_whole_answer(fleet: Served) -> None:
    answer = chat(fleet, max_tokens=32)
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_the_official_client_streams_the_same_answer(fleet: Served) -> None:
    whole = chat(fleet, max_tokens=32).choices[0].message.content
    stream = chat(fleet, max_tokens=32, stream=True, stream_options={"include_usage": True})
    pieces, usage = [], None
    for chunk in stream:
        usage = chunk.usage or usage  # type: ignore[attr-defined]
        pieces += [c.delta.content or "" for c in chunk.choices]  # type: ignore[attr-defined]
    assert "".join(pieces) == whole
    assert len([p for p in pieces if p]) > 1, "it came in pieces"
    assert usage is not None


def test_completions_models_and_health(fleet: Served) -> None:
    client = fleet.openai()
    assert [m.id for m in client.models.list()] == [MODEL]
    text = client.completions.create(model=MODEL, prompt="The capital of France is", max_tokens=5)
    assert "Paris" in text.choices[0].text
    health = json.loads(
        urllib.request.urlopen(fleet.url.removesuffix("/v1") + "/healthz", timeout=5).read()
    )
    assert health["ok"] is True


def test_a_stop_string_never_leaks(fleet: Served) -> None:
    answer = chat(fleet, "Count from one to ten in words.", max_tokens=64, stop=["Paris", "two"])
    assert "two" not in (answer.choices[0].message.content or "")


def test_the_same_seed_gives_the_same_text_and_another_another(fleet: Served) -> None:
    def once(seed: int) -> str:
        answer = chat(fleet, "Tell a story.", max_tokens=24, temperature=1.0, seed=seed)
        return answer.choices[0].message.content or ""

    assert once(5) == once(5)
    assert once(5) != once(6)


def test_several_answers_in_a_schema_with_log_probabilities(fleet: Served) -> None:
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 16},
            "size": {"enum": ["small", "large"]},
        },
        "required": ["city", "size"],
        "additionalProperties": False,
    }
    asked: dict[str, object] = {
        "max_tokens": 80,
        "temperature": 1.0,
        "logprobs": True,
        "top_logprobs": 2,
        "presence_penalty": 0.1,
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    }
    answer = chat(fleet, n=3, seed=20, **asked)
    assert [c.index for c in answer.choices] == [0, 1, 2]
    for choice in answer.choices:
        assert choice.finish_reason == "stop"
        text = choice.message.content or ""
        assert json.loads(text).keys() == {"city", "size"}
        assert choice.logprobs is not None
        content = choice.logprobs.content or []
        assert b"".join(bytes(t.bytes or []) for t in content).decode() == text
        assert all(len(t.top_logprobs) == 2 for t in content)
    alone = chat(fleet, seed=21, **asked)
    assert alone.choices[0].message.content == answer.choices[1].message.content


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"max_tokens": -1}, 400, "max_tokens"),
        ({"messages": []}, 400, "messages"),
        ({"messages": [{"role": "user", "content": ""}]}, 400, "content"),
        ({"messages": [{"role": "user", "content": "   "}]}, 400, ""),
        ({"model": "gpt-17"}, 404, "gpt-17"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, 400, "tools"),
        ({"n": 0}, 400, "n"),
        ({"logit_bias": {"10000000": 1}}, 400, "vocabulary"),
        ({"regex": "["}, 400, "unclosed"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {"type": "strin"}},
                }
            },
            400,
            "strin",
        ),
    ],
)
def test_bad_requests_get_a_sentence_and_disturb_nobody(
    fleet: Served, change: dict[str, object], status: int, says: str
) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}], "max_tokens": 4}
    with pytest.raises(openai.APIStatusError) as caught:
        fleet.openai().post("/chat/completions", body={**body, **change}, cast_to=object)
    assert caught.value.status_code == status
    assert says in str(caught.value)
    assert "Paris" in (chat(fleet, max_tokens=16).choices[0].message.content or "")


def test_a_huge_max_tokens_is_cut_to_what_fits(fleet: Served) -> None:
    answer = chat(fleet, max_tokens=10**9)
    assert "Paris" in (answer.choices[0].message.content or "")


def test_prompts_at_the_edge_of_the_window(fleet: Served) -> None:
    context = fleet.openai().models.retrieve(MODEL).fleet["context_length"]  # type: ignore[attr-defined]

    def complete(length: int) -> openai.types.Completion:
        ids = [random.Random(1).randrange(1000, 2000) for _ in range(length)]
        return fleet.openai().completions.create(
            model=MODEL, prompt=ids, max_tokens=8, extra_body={"ignore_eos": True}
        )

    with pytest.raises(openai.BadRequestError, match=str(context)):
        complete(context + 1)
    with pytest.raises(openai.BadRequestError, match=str(context)):
        complete(context)


def test_a_wrong_key_and_no_key_get_401(fleet: Served) -> None:
    stranger = openai.OpenAI(base_url=fleet.url, api_key="wrong", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        stranger.models.list()
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(fleet.url + "/models", timeout=5)


def test_one_client_leaving_disturbs_nobody(fleet: Served) -> None:
    alone = chat(fleet, "Name the planets.", max_tokens=48).choices[0].message.content
    with ThreadPoolExecutor(4) as pool:
        others = [pool.submit(chat, fleet, "Name the planets.", max_tokens=48) for _ in range(3)]
        stream = chat(fleet, "Name the planets.", max_tokens=48, stream=True)
        for index, _ in enumerate(stream):
            if index == 4:
                stream.close()  # type: ignore[attr-defined]
                break
        texts = {f.result().choices[0].message.content for f in others}
    assert texts == {alone}


def peer_ports(fleet: Served) -> set[int]:
    """Ports on which PCs listen for one another: the control port and the runners' data ports."""
    ports = set()
    for process in [fleet.agents()["pc-1"], *fleet.runners().values()]:
        for connection in process.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN:
                ports.add(connection.laddr.port)
    local = {json.loads(f.read_text())["port"] for f in fleet.folder.glob("*/agent.json")}
    return ports - local - {int(fleet.url.rsplit(":", 1)[1].split("/")[0])}


def test_nothing_but_tls_crosses_between_pcs(library: Path) -> None:
    try:
        capture = Capture()
    except (PermissionError, AttributeError) as reason:
        pytest.skip(f"raw sockets are not allowed here: {reason}")
    with capture, Served(3, "exact", library) as fleet:
        chat(fleet, f"Repeat: {SECRET}", max_tokens=16)
        ports = peer_ports(fleet)
        assert len(ports) >= 4, "the control port and three data ports"
        # a relink makes a second set of ring connections, seen from their very first byte
        streams = {s: d for s, d in capture.streams().items() if set(s) & ports}
    assert len(streams) >= 10, "control connections and three hops, both ways"
    for (source, target), data in streams.items():
        assert is_tls(data), f"{source}->{target} begins with {data[:20]!r}"
        assert records_only(data), f"{source}->{target} carries something besides TLS records"
        assert SECRET.encode() not in data


def refused(port: int, path: str, context: ssl.SSLContext) -> bool:
    """Whether somebody without a certificate is turned away, by TLS or by HTTP."""
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=5) as raw,
            context.wrap_socket(raw) as peer,
        ):
            peer.sendall(request)
            answer = peer.recv(4096)
    except OSError:
        return True
    return not answer or answer.split(b" ")[1] in (b"401", b"403")


def test_a_stranger_gets_nothing(fleet: Served) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for port in peer_ports(fleet):
        for path in ("/control", "/fleet", "/blobs/" + "0" * 64, "/api/v1/models"):
            assert refused(port, path, context), f"port {port} answered {path}"
        with socket.create_connection(("127.0.0.1", port), timeout=5) as raw:
            raw.settimeout(15)
            try:
                raw.sendall(os.urandom(64))
                answer = raw.recv(4096)
            except ConnectionResetError:
                continue
            assert answer == b"" or is_tls(answer) or answer.startswith(b"HTTP/1.1 400")
    assert "Paris" in (chat(fleet, max_tokens=16).choices[0].message.content or "")


def mixed(fleet: Served, count: int, longest: int) -> None:
    """Requests of 1 to 2,000 prompt tokens; a third is left in the middle."""
    rng = random.Random(4)
    lengths = [n for n in (1, 3, 17, 64, 200, 700, 2000) if n <= longest]
    plans = [(rng.choice(lengths), rng.random() < 0.34, rng.randrange(1, 24)) for _ in range(count)]

    def one(plan: tuple[int, bool, int]) -> None:
        length, leave, tokens = plan
        ids = [rng.randrange(1000, 20000) for _ in range(length)]
        stream = fleet.openai().completions.create(
            model=MODEL,
            prompt=ids,
            max_tokens=tokens,
            stream=True,
            extra_body={"ignore_eos": True},
        )
        for index, _ in enumerate(stream):
            if leave and index >= tokens // 2:
                stream.close()
                return

    with ThreadPoolExecutor(6) as pool:
        for future in [pool.submit(one, p) for p in plans]:
            future.result(timeout=300)


def pids(fleet: Served) -> dict[str, int]:
    """Of the runners."""
    return {name: process.pid for name, process in fleet.runners().items()}


def footprint(fleet: Served) -> dict[str, tuple[int, int]]:
    """Open files and resident bytes by process."""
    found = {}
    for name, process in {
        **fleet.agents(),
        **{f"{n} runner": p for n, p in fleet.runners().items()},
    }.items():
        found[name] = (process.num_fds() if os.name == "posix" else 0, process.memory_info().rss)
    return found


def leaks(fleet: Served, warm: int, count: int, longest: int, grow: float) -> None:
    """What a runner has can be compared only with what the same process had: where layers were
    dealt anew meanwhile it is all done again.
    """
    for _ in range(3):
        mixed(fleet, warm, longest)
        fleet.openai().completions.create(model=MODEL, prompt=[1000] * longest, max_tokens=1)
        fleet.wait_live(fleet.nodes)
        processes, before = pids(fleet), footprint(fleet)
        mixed(fleet, count, longest)
        fleet.wait_live(fleet.nodes)
        if pids(fleet) == processes:
            break
    else:
        raise AssertionError("layers were dealt anew three times in a minute")
    end = time.monotonic() + 20  # clients keep their connections for a while
    while True:
        gc.collect()
        after = footprint(fleet)
        more = [n for n, (files, _) in after.items() if files > before.get(n, (0,))[0] + 4]
        if not more or time.monotonic() > end:
            break
        time.sleep(0.5)
    for name, (files, rss) in after.items():
        assert files <= before[name][0] + 4, (
            f"{name} has {files} open files, before {before[name][0]}"
        )
        assert rss <= before[name][1] * grow + 40 * 2**20, f"{name}: {before[name][1]} -> {rss}"
    end = time.monotonic() + 5  # the last client has only just left
    while not (idle := at_rest(fleet)) and time.monotonic() < end:
        time.sleep(0.1)
    assert idle, f"{fleet.local('fleet')['chains']} {fleet.local('runners')}"


def at_rest(fleet: Served) -> bool:
    """Nothing runs or waits, and no slot or block is held on any PC."""
    chain = fleet.local("fleet")["chains"][0]
    counters = [stats for node in fleet.agents() for stats in fleet.local("runners", node)]
    assert len(counters) == fleet.nodes
    return (chain["running"], chain["waiting"]) == (0, 0) and all(
        s["open_slots"] == 0 and s["free_blocks"] + s["kept_blocks"] == s["blocks"]
        for s in counters
    )


def test_mixed_requests_leave_nothing_behind(fleet: Served) -> None:
    leaks(fleet, 10, 16, longest=200, grow=1.25)


@pytest.mark.slow
def test_300_mixed_requests_leave_nothing_behind(library: Path) -> None:
    """With caches so small that the first sixty fill them: what grows after that is lost."""
    caches = {
        "FLEETAPP_KV_MEMORY_MB": "128",
        "FLEETAPP_KV_SPILL_MB": "16",
        "FLEETAPP_KV_SPILL_DISK_MB": "32",
    }
    with Served(3, "exact", library, **caches) as small:
        leaks(small, 60, 300, longest=2000, grow=1.15)


@pytest.mark.parametrize("node", ["pc-1", "pc-2"])
def test_who_watches_sees_what_the_chain_does(fleet: Served, node: str) -> None:
    """On the coordinator as on a member: tokens per second, and where the time of a step goes."""
    seen: list[dict[str, Any]] = []
    done = threading.Event()
    home = fleet.folder / node
    port = json.loads((home / "agent.json").read_text("utf-8"))["port"]
    request = urllib.request.Request(f"http://127.0.0.1:{port}/local/v1/fleet/events")
    request.add_header("Authorization", f"Bearer {(home / 'api-token').read_text('ascii')}")

    def watch() -> None:
        with urllib.request.urlopen(request, timeout=60) as stream:
            for line in stream:
                if line.startswith(b"data: "):
                    seen.extend(json.loads(line[6:])["chains"])
                if done.is_set():
                    return

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        begun = time.monotonic()
        while sum(1 for c in seen if (c["load"] or {}).get("tokens_per_second")) < 2:
            assert time.monotonic() - begun < 90, seen[-1:]
            asked = time.monotonic()
            tokens = len(fleet.ask(QUESTION, max_tokens=120))
            mean = tokens / (time.monotonic() - asked)
    finally:
        done.set()
        watching.join(60)
    busy = [c["load"] for c in seen if (c["load"] or {}).get("tokens_per_second")]
    best = max(load["tokens_per_second"] for load in busy)
    assert mean / 2 < best < mean * 3, "as the client measures it, reading the prompt aside"
    for load in busy:
        assert len(load["stages"]) == 3
        assert all(seconds > 0 for seconds in load["stages"])
        assert load["step"] >= max(load["stages"])
    node_view = next(n for n in fleet.local("fleet")["nodes"] if n["name"] == "pc-3")
    assert 29 < (node_view["certificate_ends"] - time.time()) / 86_400 <= 30
    assert all(a["device"] == "CPU" for a in seen[-1]["assignments"])
