"""The loopback API of a coordinator with a fleet: views stream, and decisions change them."""

from __future__ import annotations

import base64
import hashlib
import time
import urllib.parse
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from fleetapp.errors import NotAMember, NotFound
from fleetapp.types import (
    AssignmentView,
    AuditCheck,
    AuditEntry,
    ChainLoad,
    ChainView,
    FleetView,
    Hardware,
    HopView,
    JoinCodeView,
    LayerRange,
    LocalStatus,
    NodeView,
)
from tests.support.fake_local_api import CODE, GB, FakeLocalApi, joined_status
from tests.support.fake_models import library_model

FLEET = "fleetfleetfleet"
MODEL = "smollm2-135m-instruct"
DAY = 86_400.0
RUNTIME = "OpenVINO 2026.2.1"


def device(number: int) -> str:
    """A device id as the fleet would give it."""
    digest = hashlib.sha256(b"%d" % number).digest()
    return base64.b32encode(digest).decode().lower()[:20]


def hardware(**changes: Any) -> Hardware:
    fields: dict[str, Any] = {
        "cores": 8, "memory_total": 16 * GB, "memory_free": 9 * GB, "disk_free": 200 * GB,
        "cpu": "Intel Core i5-1345U", "devices": ("CPU", "GPU"), "runtime": RUNTIME,
    }  # fmt: skip
    return Hardware(**(fields | changes))


def node(number: int, **changes: Any) -> NodeView:
    """A laptop that is there and may work."""
    fields: dict[str, Any] = {
        "device_id": device(number), "name": f"DESK-{number:02}", "role": "member",
        "state": "online", "contribute": True, "app": "0.3.0", "hardware": hardware(),
        "last_seen": 0.3, "reason": "contributing", "temperature": 52.0,
        "certificate_ends": time.time() + 24 * DAY,
    }  # fmt: skip
    return NodeView(**(fields | changes))


def part(
    number: int, stage: int, stages: int, layers: LayerRange, **changes: Any
) -> AssignmentView:
    """A stage on a PC of ``node``."""
    fields: dict[str, Any] = {
        "device_id": device(number), "node": f"DESK-{number:02}", "model": MODEL, "stage": stage,
        "stages": stages, "layers": layers, "phase": "linked", "device": "CPU",
    }  # fmt: skip
    return AssignmentView(**(fields | changes))


def chain(**changes: Any) -> ChainView:
    """Three PCs that answer."""
    fields: dict[str, Any] = {
        "chain": "c1", "model": MODEL, "precision": "fast", "epoch": 3, "state": "live",
        "reason": "All stages are linked.", "plan": "Split over three PCs.",
        "assignments": (
            part(1, 0, 3, LayerRange(0, 12)),
            part(2, 1, 3, LayerRange(12, 22), device="GPU"),
            part(3, 2, 3, LayerRange(22, 30)),
        ),
        "hops": (
            HopView(device(1), device(2), 4_000_000, 0.0021, 48e6),
            HopView(device(2), device(3), 4_000_000, 0.0034, 31e6),
            HopView(device(3), device(1), 900_000, 0.0029, 40e6),
        ),
        "standbys": (part(5, 1, 3, LayerRange(12, 22), phase="ready"),),
        "running": 4, "waiting": 1,
        "load": ChainLoad(61.4, 0.062, (0.021, 0.017, 0.016), 0.008, 3.8, 0.64),
    }  # fmt: skip
    return ChainView(**(fields | changes))


def fleet_view(**changes: Any) -> FleetView:
    """An office with a bit of everything."""
    fields: dict[str, Any] = {
        "fleet_id": FLEET,
        "name": "Office Lisbon",
        "nodes": (
            node(1, role="coordinator"),
            node(2, temperature=71.0),
            node(3, name="Büro 日本 3"),
            node(4, contribute=False, reason="user_active"),
            node(5, role="admin"),
            node(6, state="suspected", last_seen=4.2),
            node(7, state="offline", contribute=False, hardware=None, last_seen=None, app="",
                 temperature=None, certificate_ends=None, reason=""),
            node(8, app="0.2.9", drained=True),
            node(9, certificate_ends=time.time() + 1.5 * DAY),
            node(10, state="revoked", contribute=False, hardware=None, last_seen=None, app="",
                 temperature=None, certificate_ends=None, reason=""),
            node(11, state="pending", contribute=False, hardware=None, last_seen=None, app="",
                 temperature=None, certificate_ends=None, reason="", name="ANNA-LAPTOP"),
        ),
        "chains": (
            chain(),
            chain(chain="c2", model="qwen3-4b", state="preparing", load=None, hops=(), standbys=(),
                  running=0, waiting=0, reason="2 of 2 PCs fetch their parts.", assignments=(
                part(4, 0, 2, LayerRange(0, 18), model="qwen3-4b", phase="downloading",
                     done=620_000_000, total=1_400_000_000),
                part(9, 1, 2, LayerRange(18, 36), model="qwen3-4b", phase="failed",
                     message="The GPU's driver refused the model: out of memory."),
            )),
        ),
        "warnings": (
            "Two PCs use the identity of DESK-04: one is a copy of the other. See the audit log.",
        ),
    }  # fmt: skip
    return FleetView(**(fields | changes))


def coordinator_status(**changes: Any) -> LocalStatus:
    """Of the coordinator's own PC."""
    fields: dict[str, Any] = {
        "device_id": device(1), "name": "DESK-01", "role": "coordinator", "fleet_id": FLEET,
    }  # fmt: skip
    return joined_status(**(fields | changes))


def plan(model: str = MODEL, users: int = 4) -> dict[str, Any]:
    """An answer of the planner, as JSON has it."""

    def stage(number: int, start: int, stop: int) -> dict[str, Any]:
        return {
            "device_id": device(number), "name": f"DESK-{number:02}", "device": "CPU",
            "layers": {"start": start, "stop": stop}, "weight_bytes": 40_000_000 * (stop - start),
            "cache_bytes": 60_000_000, "memory": 700_000_000, "seconds": 0.0021 * (stop - start),
        }  # fmt: skip

    stages = [stage(1, 0, 12), stage(2, 12, 22), stage(3, 22, 30)]
    chains = [{
        "model_id": model, "stages": stages, "users": users, "running": users,
        "tokens_per_second": 61.0, "one_user": 16.2, "first_token": 0.42,
    }]  # fmt: skip
    return {
        "models": [{
            "model_id": model, "users": users, "chains": chains, "standbys": [],
            "tokens_per_second": 61.0, "one_user": 16.2, "first_token": 0.42, "exact": True,
            "alternatives": [
                {"way": "one PC", "tokens_per_second": 22.0, "one_user": 18.5,
                 "nodes": ["DESK-01"]},
                {"way": "replicas", "tokens_per_second": 44.0, "one_user": 18.5,
                 "nodes": ["DESK-01", "DESK-02"]},
            ],
            "sentences": [
                f"{model} is split over three PCs: four users at once get more that way.",
                "DESK-01 holds layers 0-11, DESK-02 12-21 and DESK-03 22-29.",
                "Four users together get about 61 tokens/s; one alone would get 16.2.",
            ],
        }],
        "memory": [], "unused": [],
    }  # fmt: skip


class FakeFleetApi(FakeLocalApi):
    """Says what a coordinator would; an admin's word changes the view at once."""

    def __init__(self, home: Path, status: LocalStatus | None = None) -> None:
        super().__init__(home, status or coordinator_status())
        self.view: FleetView | None = fleet_view()
        self.models.view = replace(
            self.models.view,
            library=(
                library_model(),
                library_model(id="qwen3-4b", title="Qwen3 4B", bytes=2_500_000_000, layers=36),
            ),
        )
        now = time.time()
        self.codes: list[JoinCodeView] = [
            JoinCodeView("k7", now - 9 * DAY, now - 8 * DAY, 3, approve=False, revoked=False),
            JoinCodeView("m2", now - 3600, now + DAY, 19, approve=True, revoked=False),
        ]
        self.keys: list[dict[str, Any]] = []
        self.problems: tuple[str, ...] = ()
        self.fleet_streams = 0
        """So often somebody began to follow the fleet."""

    def set_view(self, view: FleetView | None) -> None:
        """Show another fleet to everybody who listens."""
        self.view = view
        self.changed()

    def followed(self, path: str) -> object:
        if path == "/local/v1/fleet/events":
            return self.view
        return super().followed(path)

    def opened(self, path: str) -> None:
        super().opened(path)
        self.fleet_streams += path == "/local/v1/fleet/events"

    def answer(self, method: str, path: str, body: Any) -> object:
        if path in self.refusals:
            raise self.refusals[path]
        below = path.removeprefix("/local/v1/")
        administers = self.status.role != "member"
        if below.startswith(("fleet/codes", "fleet/audit", "keys")) or (
            method == "POST" and below.startswith("fleet/") and below != "fleet/plan"
        ):
            if below in ("fleet/join", "fleet/create"):
                return super().answer(method, path, body)
            if not administers:
                raise NotAMember("This PC is not admin or coordinator.")
        found = self._admin(method, below, body)
        return super().answer(method, path, body) if found is None else found

    def _admin(self, method: str, below: str, body: Any) -> object:
        kind, _, rest = below.partition("?")
        match method, kind:
            case "GET", "fleet/codes":
                return self.codes
            case "POST", "fleet/codes":
                now = time.time()
                made = JoinCodeView(
                    f"n{len(self.codes)}", now, now + 3600 * body["hours"], body["uses"],
                    body["approve"], False, CODE,
                )  # fmt: skip
                self.codes.append(replace(made, code=""))
                return made
            case "DELETE", path if path.startswith("fleet/codes/"):
                name = path.rpartition("/")[2]
                self.codes = [
                    replace(c, revoked=c.revoked or c.code_id == name) for c in self.codes
                ]
                return {"ok": True}
            case "GET", "keys":
                return self.keys
            case "POST", "keys":
                key = {
                    "id": f"key{len(self.keys)}",
                    "created": time.time(),
                    "made_on": "DESK-05",
                    **body,
                }
                self.keys.append(key)
                return {**key, "key": "fleet-3Qx9vN1"}
            case "DELETE", path if path.startswith("keys/"):
                self.keys = [k for k in self.keys if k["id"] != path.rpartition("/")[2]]
                return {"ok": True}
            case "GET", "fleet/audit":
                count = int(urllib.parse.parse_qs(rest)["last"][0])
                return audit()[-count:]
            case "GET", "fleet/audit/check":
                return AuditCheck(240, 1, 240, "ab" * 32, self.problems)
            case "POST", "fleet/plan":
                asked = [c for c in body["what_if"] if c.startswith("model=")]
                return plan(asked[0].removeprefix("model=") if asked else MODEL)
            case "POST", "models/start" | "models/stop":
                return {"ok": True}
        if (method, kind) == ("POST", "fleet/name"):
            assert self.view is not None
            self.set_view(replace(self.view, name=body["name"]))
            return {"ok": True}
        if method == "POST" and kind.startswith("fleet/"):
            self._decide(kind.removeprefix("fleet/"), body)
            return {"ok": True}
        return None

    def _decide(self, word: str, body: Any) -> None:
        assert self.view is not None
        nodes = {n.device_id: n for n in self.view.nodes}
        about = nodes.get(body["device_id"])
        if about is None:
            raise NotFound("There is nobody with that id.")
        changes: dict[str, Any] = {
            "approve": {"state": "offline"}, "drain": {"drained": True},
            "undrain": {"drained": False}, "revoke": {"state": "revoked"},
            "reinstate": {"state": "offline"}, "role": {"role": body.get("role")},
            "rename": {"name": body.get("name")},
        }.get(word, {})  # fmt: skip
        nodes[about.device_id] = replace(about, **changes)
        if word in ("decline", "evict"):
            del nodes[about.device_id]
        self.set_view(replace(self.view, nodes=tuple(nodes.values())))


def audit() -> list[AuditEntry]:
    """A few hundred lines, oldest first."""
    start = 1_790_000_000.0
    lines = [
        AuditEntry(i + 1, start + 600 * i, device(1 + i % 3), "certificate_issued")
        for i in range(238)
    ]
    return [
        *lines,
        AuditEntry(
            239, start + 1e6, device(5), "approved", {"name": "DESK-09", "device": device(9)}
        ),
        AuditEntry(240, start + 2e6, "local", "revoked", {"name": "DESK-10", "epoch": "41"}),
    ]


def many(count: int, *, live: int = 0, beat: int = 0) -> FleetView:
    """A large fleet; the first ``live`` PCs differ with each ``beat``."""
    nodes = []
    for i in range(count):
        changes: dict[str, Any] = {"name": f"PC-{i}", "device_id": f"d{i:019}", "last_seen": 0.2}
        if i < live:
            changes["temperature"] = 40.0 + (i + beat) % 40
            changes["contribute"] = (i + beat) % 7 != 0
            changes["reason"] = "contributing" if changes["contribute"] else "user_active"
        nodes.append(node(i + 1, **{**changes, "certificate_ends": 1.9e9}))
    return FleetView(FLEET, "Large office", tuple(nodes), ())
