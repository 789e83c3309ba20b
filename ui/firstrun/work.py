"""Carries out what was chosen, step by step. Each step may be tried again; none is done twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from fleetapp.errors import (
    Cancelled,
    FleetError,
    FleetUnavailable,
    ManagedByPolicy,
    ProtocolError,
    from_code,
)
from fleetapp.types import (
    ChainView,
    ContributionReason,
    FleetView,
    LocalStatus,
    ModelJob,
    ModelsView,
)
from ui import agent_words, words
from ui.client import Call
from ui.firstrun.choices import Choices
from ui.firstrun.steps import STEPS, Step, StepName, StepState
from ui.firstrun.words import job_line
from ui.session import AgentSession, CreatedFleet
from ui.view import AgentView

POLL_MS = 400
PATIENCE = 60.0
"""Seconds for which nobody may answer while work goes on: an agent may be restarting."""
STANDSTILL = 180.0
"""Seconds without any change after which starting a model counts as failed."""


class Work(QObject):
    """Begins when told; ends with ``finished``, or with a step that has failed."""

    changed = Signal()
    finished = Signal()
    declined = Signal(str)
    """Joining was refused; the sentence that says why."""

    def __init__(
        self,
        session: AgentSession,
        choices: Choices,
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self.choices = choices
        self.steps: dict[StepName, Step] = {n: Step(n) for n in STEPS[choices.way]}
        self.code = ""
        """The first join code of a fleet that was created here."""
        self.model = ""
        """Id of the model that was got."""
        self._session = session
        self._clock = clock
        self._call: Call | None = None
        self._job = ""
        self._silent_since: float | None = None
        self._waited = False
        self._wishes = list(choices.values.items())
        self._seen: object = None
        self._seen_at = 0.0
        self._pace = words.Pace()
        self._next: Callable[[], None] = lambda: None
        self._poll = QTimer(self, singleShot=True, interval=POLL_MS)
        self._poll.timeout.connect(self._poll_now)
        session.changed.connect(self._view_changed)

    # ------------------------------------------------------------------ for the window

    @property
    def running(self) -> Step | None:
        """The step under way."""
        return next((s for s in self.steps.values() if s.state == "running"), None)

    @property
    def failed(self) -> Step | None:
        """The step that could not be done."""
        return next((s for s in self.steps.values() if s.state == "failed"), None)

    @property
    def awaits_approval(self) -> bool:
        """Whether an administrator has to say yes."""
        status = self._session.view.status
        return self.running is not None and status is not None and status.joining == "approval"

    @property
    def over(self) -> bool:
        return all(s.state == "done" for s in self.steps.values())

    def begin(self) -> None:
        """Go on with the first step that is not done."""
        if self.running is not None:
            return
        step = next((s for s in self.steps.values() if s.state != "done"), None)
        if step is None:
            self.finished.emit()
            return
        self._put(step.name, "running")
        {
            "limits": self._limits,
            "create": self._create,
            "join": self._join,
            "model": self._look_for_model,
            "start": self._start,
        }[step.name]()

    def use_file(self, path: str) -> None:
        """Take a model file of this PC instead, and go on."""
        self.choices = _with_file(self.choices, path)
        self.begin()

    def cancel(self) -> None:
        """End what is under way; what is done stays done."""
        step = self.running
        if step is None:
            return
        self._poll.stop()
        if step.name == "join":
            self._session.stop_joining()
        if self._job:
            self._session.cancel_job(self._job)
            self._job = ""
        if (call := self._call) is not None:
            self._call = None
            call.cancel()
        self._put(step.name, "failed", error=Cancelled(self.tr("You have stopped this.")))

    # ------------------------------------------------------------------ steps

    def _limits(self) -> None:
        if not self._wishes:
            self._done("limits")
            return
        name, value = self._wishes[0]
        self._ask(self._session.set_setting(name, value), self._kept, self._not_kept)

    def _kept(self, _answer: object) -> None:
        self._wishes = self._wishes[1:]
        self._limits()

    def _not_kept(self, error: FleetError) -> None:
        if isinstance(error, ManagedByPolicy):
            self._kept(None)  # laid down meanwhile; the policy's word holds
        else:
            self._fail("limits", error)

    def _create(self) -> None:
        if self._session.view.joined:
            self._done("create")  # before a restart, say
            return
        name = self.choices.name.strip() or self.tr("Only this PC")
        self._ask(self._session.create_fleet(name), self._created, self._failing("create"))

    def _created(self, fleet: CreatedFleet) -> None:
        self.code = fleet.code
        self._done("create")

    def _join(self) -> None:
        if self._session.view.joined:
            self._done("join")
            return
        call = self._session.join_fleet(self.choices.code.strip(), self.choices.address.strip())
        self._ask(call, lambda _: self._done("join"), self._not_joined)

    def _not_joined(self, error: FleetError) -> None:
        if self._waited and isinstance(error, FleetUnavailable):
            # who has to say yes may be at lunch; the fleet remembers who waits
            self._next = self._join
            self._poll.start()
            return
        if not isinstance(error, Cancelled):
            self.declined.emit(str(error))
        self._fail("join", error)

    def _look_for_model(self) -> None:
        self._ask(self._session.models(), self._choose_model, self._failing("model"))

    def _choose_model(self, found: ModelsView) -> None:
        if self.choices.file:
            call = self._session.import_model(self.choices.file)
            self._ask(call, self._follow_job, self._failing("model"))
            return
        entry = next((m for m in found.catalog if m.default), None)
        if entry is None:
            odd = FleetError(
                self.tr("No model is known by name."),
                remedy=self.tr("Choose a model file instead."),
            )
            self._fail("model", odd)
        elif entry.in_library:
            self.model = entry.id
            self._done("model")
        else:
            # an interrupted download goes on where it stopped
            self._ask(self._session.get_model(entry.id), self._follow_job, self._failing("model"))

    def _follow_job(self, job: ModelJob) -> None:
        self._job = job.job
        if job.state == "running":
            self._put("model", "running", job_line(job), job.done, job.total)
            self._later(self._session.models, self._jobs_seen, "model")
            return
        self._job = ""
        if job.state == "done":
            self.model = job.model
            self._done("model")
        elif job.error is not None:
            error = from_code(job.error.code, job.error.message, job.error.remedy)
            self._fail("model", error)
        else:
            self._fail("model", Cancelled(self.tr("This was stopped.")))

    def _jobs_seen(self, found: ModelsView) -> None:
        job = next((j for j in found.jobs if j.job == self._job), None)
        if job is not None:
            self._follow_job(job)
        else:
            gone = FleetError(
                self.tr("The agent has forgotten this work."), remedy=self.tr("Try again.")
            )
            self._fail("model", gone)

    def _start(self) -> None:
        self._seen, self._seen_at = None, self._clock()
        self._pace = words.Pace()
        call = self._session.start_model(self.model)
        self._ask(call, lambda _: self._watch(), self._failing("start"))

    def _watch(self) -> None:
        self._later(self._session.fleet_view, self._chains_seen, "start")

    def _chains_seen(self, fleet: FleetView) -> None:
        chain = next((c for c in fleet.chains if c.model == self.model), None)
        if chain is not None and chain.state == "live":
            self._done("start")
            return
        failed = (
            next((a for a in chain.assignments if a.phase == "failed"), None) if chain else None
        )
        status = self._session.view.status
        why = _held_back(status) if status is not None else ""
        if failed is not None:
            self._fail("start", FleetError(failed.message, remedy=self.tr("Try again.")))
            return
        self._show_start(chain, why)
        seen = (chain, why)
        if seen != self._seen:
            self._seen, self._seen_at = seen, self._clock()
        elif self._clock() - self._seen_at > STANDSTILL:
            said = why or (chain.reason if chain is not None else "")
            self._fail(
                "start", FleetError(self.tr("The model does not start. {why}").format(why=said))
            )
            return
        self._watch()

    def _show_start(self, chain: ChainView | None, why: str) -> None:
        shard = chain.assignments[0] if chain is not None and chain.assignments else None
        if why:
            self._put("start", "running", why)
        elif shard is not None:
            left = self._pace.seconds_left(shard, self._clock())
            self._put("start", "running", words.progress_line(shard, left), shard.done, shard.total)
        elif chain is not None:
            self._put("start", "running", chain.reason)

    # ------------------------------------------------------------------ helpers

    def _ask(
        self, call: Call, done: Callable[..., object], failed: Callable[[FleetError], object]
    ) -> None:
        self._call = call

        def ended(then: Callable[..., object], value: object) -> None:
            if self._call is call:
                self._call = None
                then(value)

        call.then(lambda value: ended(done, value), lambda error: ended(failed, error))

    def _later(self, ask: Callable[[], Call], done: Callable[..., object], step: StepName) -> None:
        """Ask again in a moment; that nobody answers is forgiven for a while."""

        def go() -> None:
            call = self._call = ask()
            call.then(lambda value: ended(call, value), lambda error: odd(call, error))

        def ended(call: Call, value: object) -> None:
            if self._call is call:
                self._call, self._silent_since = None, None
                done(value)

        def odd(call: Call, error: FleetError) -> None:
            if self._call is not call:
                return
            self._call = None
            now = self._clock()
            since = self._silent_since = self._silent_since or now
            silent = isinstance(error, FleetUnavailable | ProtocolError)
            if silent and now - since < PATIENCE:
                self._later(ask, done, step)
            else:
                self._silent_since = None
                self._fail(step, error)

        self._next = go
        self._poll.start()

    def _poll_now(self) -> None:
        self._next()

    def _failing(self, name: StepName) -> Callable[[FleetError], None]:
        return lambda error: self._fail(name, error)

    def _fail(self, name: StepName, error: FleetError) -> None:
        self._job = ""
        self._put(name, "failed", error=error)

    def _done(self, name: StepName) -> None:
        self._put(name, "done")
        # not from inside the answer to the step before
        QTimer.singleShot(0, self, self.begin)

    def _put(
        self,
        name: StepName,
        state: StepState,
        detail: str = "",
        done: int = 0,
        total: int = 0,
        *,
        error: FleetError | None = None,
    ) -> None:
        now = Step(name, state, detail, done, total, error)
        if now != self.steps[name]:
            self.steps[name] = now
            self.changed.emit()

    def _view_changed(self, view: AgentView) -> None:
        step = self.running
        if step is None or step.name != "join" or view.status is None:
            return
        if view.joined:
            if (call := self._call) is not None:
                self._call = None
                call.cancel()
            self._done("join")
        else:
            self._waited = self._waited or view.status.joining == "approval"
            self.steps["join"] = replace(step, detail=agent_words.said(view.status.reason))
            self.changed.emit()


def _with_file(choices: Choices, path: str) -> Choices:
    return msgspec.structs.replace(choices, file=path)


_FINE: frozenset[ContributionReason] = frozenset({"contributing", "draining"})


def _held_back(status: LocalStatus) -> str:
    """Why this PC may not compute now, in its own words; empty if it may."""
    contribution = status.contribution
    if contribution.reason in _FINE or contribution.on:
        return ""
    return agent_words.said(contribution.sentence)
