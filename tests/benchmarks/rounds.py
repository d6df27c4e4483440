"""Rounds in which everybody takes a turn, so that what disturbs the machine disturbs all alike."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import attrs

from broker.releases import NEWEST, Release
from tests.kafka.jvm import KafkaJvm, KafkaUnavailableError

START: Final = time.perf_counter()


@attrs.frozen
class Took:
    """One run: how much was done, in units of the measurement, in how many seconds of the clock and of the thread."""

    count: float
    wall_s: float
    cpu_s: float


@attrs.frozen
class Medians:
    """What one contestant did a second: medians of its runs, by the clock and by the thread's own time."""

    wall_rate: float
    cpu_rate: float


@attrs.frozen(kw_only=True)
class Line:
    """One line of the table. `unit` is "M records/s", "GB/s" or "µs each"; the last turns rates into times."""

    what: str
    case: str
    unit: str
    found: Mapping[str, Medians]
    peak_mib: float | None = None

    def row(self) -> dict[str, Any]:
        """Return the line as a row of a table; every line has the same columns."""
        ours = self.found["ours"]
        others = {f"x {name}": self._ratio(name) for name in ("aiokafka", "kafka-python")}
        java = self.found.get("Java")
        return {
            "what": self.what,
            "case": self.case,
            "unit": self.unit,
            "ours, CPU": self._shown(ours.cpu_rate),
            "ours, wall": self._shown(ours.wall_rate),
            "Java, CPU": None if java is None else self._shown(java.cpu_rate),
            "Java, wall": None if java is None else self._shown(java.wall_rate),
            "x Java, CPU": self._ratio("Java"),
            "x Java, wall": None if java is None else round(ours.wall_rate / java.wall_rate, 2),
            **others,
            "peak MiB": self.peak_mib,
        }

    def _shown(self, rate: float) -> float:
        if self.unit.startswith("µs"):
            return round(1e6 / rate, 3)
        return round(rate / (1e9 if self.unit == "GB/s" else 1e6), 2)

    def _ratio(self, name: str) -> float | None:
        other = self.found.get(name)
        return None if other is None else round(self.found["ours"].cpu_rate / other.cpu_rate, 2)


def measured(run: Callable[[], float]) -> Took:
    """Return how long `run` took, which returns how much it did."""
    wall, cpu = time.perf_counter(), time.thread_time()
    count = run()
    return Took(count, time.perf_counter() - wall, time.thread_time() - cpu)


def in_turn(
    contestants: Mapping[str, Callable[[], Took]], rounds: int, what: str, *, warm_ups: int = 1
) -> dict[str, Medians]:
    """Let each contestant run once a round; the first rounds are left out: they compile and fill the page cache."""
    found: dict[str, list[Took]] = {name: [] for name in contestants}
    for number in range(1 - warm_ups, rounds + 1):
        say(f"{what}: round {number} of {rounds}" if number > 0 else f"{what}: warming up")
        for name, run in contestants.items():
            found[name].append(run())
    return {name: medians(runs[warm_ups:]) for name, runs in found.items()}


def median_cpu_s(run: Callable[[], object], rounds: int) -> float:
    """Return the median CPU seconds of this process for a call, after one that compiles."""
    run()
    return statistics.median(process_cpu(run).cpu_s for _ in range(rounds))


def process_cpu(run: Callable[[], object]) -> Took:
    """Return how long one call took, in CPU seconds of the whole process, so that no helper thread could hide."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return Took(1, time.perf_counter() - wall, time.process_time() - cpu)


def java_took(answer: Mapping[str, Any]) -> Took:
    """Return one call of a Java thread that tells its CPU nanoseconds."""
    return Took(1, answer["cpuNs"] / 1e9, answer["cpuNs"] / 1e9)


def kafka_or_none(stack: ExitStack, release: Release = NEWEST) -> KafkaJvm | None:
    """Start Kafka's own classes; return None, and say why, where they cannot be had."""
    say("starting Java")
    try:
        return stack.enter_context(KafkaJvm.start(Path(stack.enter_context(tempfile.TemporaryDirectory())), release))
    except KafkaUnavailableError as missing:
        say(f"without Kafka's own classes: {missing}")
        return None


def medians(runs: Sequence[Took]) -> Medians:
    """Return the median rates of some runs."""
    return Medians(
        statistics.median(run.count / run.wall_s for run in runs),
        statistics.median(run.count / run.cpu_s for run in runs),
    )


def say(text: str) -> None:
    """Tell whoever waits what is going on, and since when."""
    print(f"{time.perf_counter() - START:6.0f} s  {text}", file=sys.stderr, flush=True)
