"""Run an application under drawn faults on virtual time, seed after seed, and shrink the faults that break it.

`main(kafka)`, a coroutine function, runs until it returns, at most the given minutes, on the cluster that `CLUSTER` of
its module describes. A seed is broken by an invariant of the cluster, a record acknowledged with acks=all that is gone
without an election that the settings allow, or whatever the application raised, SystemExit and UsageError included, or
a task of it that nobody waits for. An application may run until its minutes are over, as services do; what it would
check at its end is open then. One whose clients never connect is not broken, but proves nothing.

Drawn faults are strict: fewer than min.insync.replicas brokers lose records at one time. Faults that are given lose
what they say, unless `CLUSTER` is strict.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import PurePath
from typing import Any, Final

import attrs

from broker.cli import Terminated
from broker.errors import UsageError, shorten
from broker.units import MINUTE_MS, SECOND_MS, DurationMs
from replication.simulation.fault import Fault
from replication.simulation.faults import draw_plan
from replication.simulation.options import FaultKind
from replication.simulation.report import lost_text, shrink
from replication.simulation.run import Outcome
from replication.testing.cluster_spec import ClusterSpec
from replication.testing.kafka import Kafka
from replication.testing.served_cluster import ModelError
from replication.testing.virtual import STOP_S, VirtualRun, fault_of_main
from replication.testing.virtual_loop import VirtualLoop

Main = Callable[[Kafka], Awaitable[Any]]
FAULT_MS_MEAN: Final = {
    FaultKind.KILL: 60_000,
    FaultKind.STOP: 90_000,
    FaultKind.PAUSE: 60_000,
    FaultKind.POWER_LOSS: 120_000,
    FaultKind.CUT_PEERS: 90_000,
    FaultKind.CUT_CONTROLLER: 90_000,
    FaultKind.SLOW: 120_000,
    FaultKind.CONTROLLER_FAILOVER: 180_000,
}
"""The mean time in ms between faults of a kind."""
_STOPPED_MS_MAX: Final = 3 * STOP_S * SECOND_MS
"""How long in ms an application may take to end after its minutes: it is cancelled, then what it left behind."""
_SHRINK_TRIES_MAX: Final = 100
_TEXT_LENGTH_MAX: Final = 300
_OF_THE_USER: Final = (KeyboardInterrupt, Terminated)
"""What ends the command, not the application."""


@attrs.frozen(kw_only=True)
class AppRun:
    """Hold what an application is run with; `app` is `module:function`."""

    app: str
    seed: int
    minutes: float
    spec: ClusterSpec
    faults: tuple[Fault, ...] | None = None
    """The faults to run; None for those that the seed draws."""

    def with_plan(self, plan: tuple[Fault, ...]) -> ClusterSpec:
        """Return the cluster of this seed under a plan; drawn faults lose no records that Kafka cannot but lose."""
        is_strict = self.spec.is_strict or self.faults is None
        return attrs.evolve(self.spec, seed=self.seed, faults=plan, is_append_time=True, is_strict=is_strict)

    def plan(self) -> tuple[Fault, ...]:
        """Return the faults to run."""
        if self.faults is not None:
            return self.faults
        options = attrs.evolve(
            self.with_plan(()).options(),
            duration_ms=self.duration_ms,
            fault_ms=tuple((kind, DurationMs(mean)) for kind, mean in FAULT_MS_MEAN.items()),
        )
        return draw_plan(options)

    @property
    def duration_ms(self) -> DurationMs:
        """Return how long the application may run in ms."""
        return DurationMs(max(int(self.minutes * MINUTE_MS), SECOND_MS))


@attrs.frozen(kw_only=True)
class AppOutcome:
    """Hold the outcome of one seed; `error` is what the application raised and where, "" for nothing."""

    seed: int
    plan: tuple[Fault, ...]
    """The faults as they struck: of those drawn, a KILL where a broker might not lose records."""
    error: str
    task_error: str
    """What the first of its tasks raised that nobody waited for, "" for nothing."""
    failures: frozenset[str]
    """The class of what the application raised, with the line, and the codes of the invariants that were broken."""
    has_ended: bool
    """Whether the application returned or raised; False if it was cut off after `minutes`."""
    has_connected: bool
    """Whether a client has ever connected to a broker."""
    minutes: float
    struck_count: int
    """How many faults of the plan struck before the application had ended."""
    outcome: Outcome

    @property
    def is_broken(self) -> bool:
        """Return whether the application or a task of it raised, or the cluster broke an invariant."""
        return bool(self.failures)

    @property
    def is_idle(self) -> bool:
        """Return whether the seed is not broken and proves nothing, as no client ever connected."""
        return not (self.is_broken or self.has_connected)

    def line(self) -> str:
        """Return the verdict in one line."""
        parts = [f"the application raised {self.error}"] if self.error else []
        parts += [f"a background task raised {self.task_error}"] if self.task_error else []
        parts += [f"BROKEN: {finding}" for finding in self.outcome.findings[:1]]
        lost = lost_text(self.outcome)
        parts += [lost] if lost else []
        parts = parts or ["nothing is broken" + ("" if self.has_connected else f", but {NOT_CONNECTED}")]
        return "; ".join([*parts, *([] if self.has_ended else [running_text(self.minutes)])])


NOT_CONNECTED: Final = "no client ever connected (one in C or of a thread needs real time: see `brokerside serve`)"


def running_text(minutes: float) -> str:
    """Return the words for an application that was cut off."""
    over = "minute was" if minutes == 1 else "minutes were"
    return f"the application was still running when its {minutes:g} {over} over"


def spec_of(name: str) -> ClusterSpec:
    """Return the cluster that the module of `module:function` describes as `CLUSTER`; three brokers without it."""
    load_app(name)
    found = getattr(import_module(name.partition(":")[0]), "CLUSTER", ClusterSpec())
    if not isinstance(found, ClusterSpec):
        raise UsageError(f"--app {name}: CLUSTER is {found!r}; wanted is a replication.testing.ClusterSpec")
    return found


def load_app(name: str) -> Main:
    """Return the coroutine function `module:function`; raise UsageError if there is none."""
    module_name, _, attribute = name.partition(":")
    if not all(module_name.split(".")):
        raise UsageError(f"--app {name!r} names no module; wanted is MODULE:MAIN, such as my_service:main")
    try:
        found = getattr(import_module(module_name), attribute or "main", None)
    except _OF_THE_USER:
        raise
    except BaseException as error:  # Whatever a module raises as it is imported; SyntaxError names its place.
        text = str(error) if isinstance(error, SyntaxError) else _raised_text(error, module_name)
        raise UsageError(f"--app {name}: {text}") from None
    if found is None or not asyncio.iscoroutinefunction(found):
        raise UsageError(f"--app {name} names no coroutine function; write `async def {attribute or 'main'}(kafka)`")
    if fault := fault_of_main(found):
        raise UsageError(f"--app {name}: {fault}")
    main: Main = found
    return main


def run_app(asked: AppRun) -> AppOutcome:
    """Run the application with one seed, and return the outcome."""
    app, plan = _Limited(load_app(asked.app), asked.duration_ms / SECOND_MS), asked.plan()
    module = asked.app.partition(":")[0]
    run = VirtualRun(asked.with_plan(plan), asked.duration_ms + _STOPPED_MS_MAX)
    error, raised_as = "", set[str]()
    try:
        run.complete(app.run)
    except ModelError:
        pass  # The outcome has the finding.
    except _OF_THE_USER:
        raise
    except BaseException as raised:  # Whatever an application raises is its verdict.
        error, raised_as = _raised_text(raised, module), {_failure(raised, module)}
    in_tasks = [each for each in app.unhandled if not isinstance(each, ModelError)]
    outcome = run.served.finish()
    softened = run.served.simulation.fault_injector.softened
    return AppOutcome(
        seed=asked.seed,
        plan=tuple(attrs.evolve(each, kind=FaultKind.KILL) if each in softened else each for each in plan),
        error=error,
        task_error=_raised_text(in_tasks[0], module) if in_tasks else "",
        failures=outcome.failures | raised_as | {_failure(each, module) for each in in_tasks},
        has_ended=app.has_ended,
        has_connected=app.has_connected,
        minutes=asked.minutes,
        struck_count=run.served.faults.struck_count,
        outcome=outcome,
    )


@attrs.define
class _Limited:
    """Run an application for so many virtual seconds at most, and note what it has done by then."""

    main: Main
    seconds: float
    has_ended: bool = True
    has_connected: bool = False
    unhandled: tuple[Exception, ...] = ()

    async def run(self, kafka: Kafka) -> None:
        """Run the application; cancel it when its time is over."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop), loop
        task = asyncio.ensure_future(self.main(kafka))
        try:
            done, _ = await asyncio.wait({task}, timeout=self.seconds)
            self.has_ended = bool(done)
            if done and not task.cancelled():
                task.exception()  # It is handled: it is raised below.
        finally:
            self.has_connected, self.unhandled = loop.has_connected, loop.unhandled()
        if self.has_ended:
            await task
            return
        task.cancel()
        await asyncio.wait({task}, timeout=STOP_S)
        if task.done() and not task.cancelled():
            task.exception()  # As it is told to stop, it may raise.


def _failure(raised: BaseException, module: str) -> str:
    """Return the name of a failure: the exception's class, and where in a module it came from."""
    return type(raised).__name__ + _place(raised, module)


def _raised_text(raised: BaseException, module: str) -> str:
    """Return an exception's class, its text, and where in a module it came from."""
    name = type(raised).__name__
    # Clients put their class in front, and the representation of texts with ends of lines.
    text = " ".join(str(raised).removeprefix(f"{name}: ").replace("\\n", " ").split())
    return name + (f": {shorten(text, _TEXT_LENGTH_MAX)}" if text else "") + _place(raised, module)


def _place(raised: BaseException, module: str) -> str:
    """Return the file and line in `module` that raised an exception, in brackets; "" if no frame is of it."""
    lines = [
        f" ({PurePath(frame.f_code.co_filename).name}, line {line})"
        for frame, line in traceback.walk_tb(raised.__traceback__)
        if frame.f_globals.get("__name__") == module
    ]
    return lines[-1] if lines else ""


def shrunk(asked: AppRun, broken: AppOutcome) -> AppOutcome:
    """Return the outcome of the smallest plan found under which the seed breaks in the same way."""
    return shrink(broken, lambda plan: run_app(attrs.evolve(asked, faults=plan)), _SHRINK_TRIES_MAX)
