"""Run an application under drawn faults on virtual time, seed after seed, and shrink the faults that break it.

`main(kafka)`, a coroutine function, runs until it returns, at most the given minutes, on the cluster that `CLUSTER` of
its module describes. A seed is broken by an invariant of the cluster, a record acknowledged with acks=all that is gone
without an election that the settings allow, or an error that the application raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, Final

import attrs

from broker.errors import UsageError
from broker.units import MINUTE_MS, SECOND_MS, DurationMs
from replication.simulation.fault import Fault
from replication.simulation.faults import draw_plan
from replication.simulation.options import FaultKind
from replication.simulation.report import lost_text, smallest_plan
from replication.simulation.run import Outcome
from replication.testing.cluster_spec import ClusterSpec
from replication.testing.kafka import Kafka
from replication.testing.served_cluster import ModelError
from replication.testing.virtual import VirtualRun

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
_SHRINK_TRIES_MAX: Final = 100


@attrs.frozen(kw_only=True)
class AppRun:
    """Hold what an application is run with; `app` is `module:function`."""

    app: str
    seed: int
    minutes: float
    spec: ClusterSpec

    def with_plan(self, plan: tuple[Fault, ...]) -> ClusterSpec:
        """Return the cluster of this seed under a plan."""
        return attrs.evolve(self.spec, seed=self.seed, faults=plan, is_append_time=True, is_strict=True)

    def plan(self) -> tuple[Fault, ...]:
        """Return the faults that the seed draws."""
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
    """Hold the outcome of one seed; `error` is what the application raised, "" for nothing."""

    seed: int
    plan: tuple[Fault, ...]
    error: str
    outcome: Outcome

    @property
    def is_broken(self) -> bool:
        """Return whether the application raised, or the cluster broke an invariant."""
        return bool(self.error) or self.outcome.is_broken

    def line(self) -> str:
        """Return the verdict in one line."""
        parts = [f"the application raised {self.error}"] if self.error else []
        parts += [f"BROKEN: {finding}" for finding in self.outcome.findings[:1]]
        lost = lost_text(self.outcome)
        parts += [lost] if lost else []
        return "; ".join(parts) or "nothing is broken"


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
    try:
        found = getattr(import_module(module_name), attribute or "main", None)
    except ImportError as error:
        raise UsageError(f"--app {name}: {error}") from None
    if found is None or not asyncio.iscoroutinefunction(found):
        raise UsageError(f"--app {name} names no coroutine function; write `async def {attribute or 'main'}(kafka)`")
    main: Main = found
    return main


def run_app(asked: AppRun, plan: tuple[Fault, ...] | None = None) -> AppOutcome:
    """Run one seed, under the faults that it draws if none are given."""
    main, plan = load_app(asked.app), asked.plan() if plan is None else plan
    run = VirtualRun(asked.with_plan(plan))
    error = ""
    try:
        run.complete(_at_most(main, asked.duration_ms / SECOND_MS))
    except UsageError:
        raise
    except ModelError:
        pass  # The outcome has the finding.
    except Exception as raised:  # Whatever an application raises is its verdict.
        error = f"{type(raised).__name__}: {' '.join(str(raised).split())}"
    return AppOutcome(seed=asked.seed, plan=plan, error=error, outcome=run.served.finish())


def _at_most(main: Main, seconds: float) -> Main:
    """Return an application that is cancelled after so many virtual seconds."""

    async def limited(kafka: Kafka) -> None:
        task = asyncio.ensure_future(main(kafka))
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if done:
            await task
        else:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    return limited


def shrunk(asked: AppRun, broken: AppOutcome) -> AppOutcome:
    """Return the outcome of the smallest plan found under which the seed still breaks."""
    found = {broken.plan: broken}

    def breaks(plan: tuple[Fault, ...]) -> bool:
        tried = run_app(asked, plan)
        if tried.is_broken:
            found[plan] = tried
        return tried.is_broken

    return found[smallest_plan(broken.plan, breaks, _SHRINK_TRIES_MAX)]
