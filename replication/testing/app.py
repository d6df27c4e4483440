"""Run an application under drawn faults on virtual time, seed after seed, and shrink the faults that break it.

`main(kafka)`, a coroutine function, runs until it returns, at most the given minutes, on the cluster that `CLUSTER` of
its module describes. A seed is broken by an invariant of the cluster, a record acknowledged with acks=all that is gone
without an election that the settings allow, or whatever the application raised, SystemExit and UsageError included. A
seed whose application was cut off is not broken, but proves nothing of what the application checks at its end.
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
        """Return the cluster of this seed under a plan."""
        return attrs.evolve(self.spec, seed=self.seed, faults=plan, is_append_time=True, is_strict=True)

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
    error: str
    failures: frozenset[str]
    """The class of what the application raised, with the line, and the codes of the invariants that were broken."""
    has_ended: bool
    """Whether the application returned or raised; False if it was cut off after `minutes`."""
    minutes: float
    struck_count: int
    """How many faults of the plan struck before the application had ended."""
    outcome: Outcome

    @property
    def is_broken(self) -> bool:
        """Return whether the application raised, or the cluster broke an invariant."""
        return bool(self.failures)

    def line(self) -> str:
        """Return the verdict in one line."""
        parts = [f"the application raised {self.error}"] if self.error else []
        parts += [f"BROKEN: {finding}" for finding in self.outcome.findings[:1]]
        lost = lost_text(self.outcome)
        parts += [lost] if lost else []
        if self.has_ended:
            return "; ".join(parts) or "nothing is broken"
        cut = f"{not_ended_text(self.minutes)}, so what it checks afterwards is open"
        return "; ".join([*(parts or ["nothing is broken"]), cut])


def not_ended_text(minutes: float) -> str:
    """Return the words for an application that was cut off."""
    return f"the application did not end within {minutes:g} {'minute' if minutes == 1 else 'minutes'}"


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
    """Run one seed."""
    main, plan = load_app(asked.app), asked.plan()
    run = VirtualRun(asked.with_plan(plan), asked.duration_ms + _STOPPED_MS_MAX)
    error, raised_as, has_ended = "", set[str](), True
    try:
        has_ended = run.complete(_at_most(main, asked.duration_ms / SECOND_MS))
    except ModelError:
        pass  # The outcome has the finding.
    except _OF_THE_USER:
        raise
    except BaseException as raised:  # Whatever an application raises is its verdict.
        module = asked.app.partition(":")[0]
        error, raised_as = _raised_text(raised, module), {type(raised).__name__ + _place(raised, module)}
    outcome = run.served.finish()
    return AppOutcome(
        seed=asked.seed,
        plan=plan,
        error=error,
        failures=outcome.failures | raised_as,
        has_ended=has_ended,
        minutes=asked.minutes,
        struck_count=run.served.faults.struck_count,
        outcome=outcome,
    )


def _at_most(main: Main, seconds: float) -> Callable[[Kafka], Awaitable[bool]]:
    """Return an application that is cancelled after so many virtual seconds, and returns whether it was not."""

    async def limited(kafka: Kafka) -> bool:
        task = asyncio.ensure_future(main(kafka))
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if done:
            await task
            return True
        task.cancel()
        await asyncio.wait({task}, timeout=STOP_S)
        if task.done() and not task.cancelled():
            task.exception()  # As it is told to stop, it may raise.
        return False

    return limited


def _raised_text(raised: BaseException, module: str) -> str:
    """Return an exception's class, its text, and where in a module it came from."""
    name = type(raised).__name__
    # Clients put their class in front, and the representation of texts with ends of lines.
    text = " ".join(str(raised).removeprefix(f"{name}: ").replace("\\n", " ").split())
    return name + (f": {shorten(text, _TEXT_LENGTH_MAX)}" if text else "") + _place(raised, module)


def _place(raised: BaseException, module: str) -> str:
    """Return the file and line of a module that an exception came from, in brackets; "" if it is none of its."""
    lines = [
        f" ({PurePath(frame.f_code.co_filename).name}, line {line})"
        for frame, line in traceback.walk_tb(raised.__traceback__)
        if frame.f_globals.get("__name__") == module
    ]
    return lines[-1] if lines else ""


def shrunk(asked: AppRun, broken: AppOutcome) -> AppOutcome:
    """Return the outcome of the smallest plan found under which the seed breaks in the same way."""
    return shrink(broken, lambda plan: run_app(attrs.evolve(asked, faults=plan)), _SHRINK_TRIES_MAX)
