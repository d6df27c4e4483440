"""Measure a run of the request path, in the terms of Kafka's metrics.

Source: kafka.network.RequestChannel and RequestMetrics, 4.0; SocketTimeMs is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

PHASES: Final = (
    "SocketTimeMs",
    "RequestQueueTimeMs",
    "LocalTimeMs",
    "RemoteTimeMs",
    "ResponseQueueTimeMs",
    "ResponseSendTimeMs",
    "TotalTimeMs",
)
PERMILLES: Final = (500, 950, 990, 999)
"""The percentiles reported, in thousandths."""


@attrs.frozen
class Quantiles:
    """Hold the mean, some percentiles and the maximum of a set of times, in milliseconds."""

    count: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float

    @classmethod
    def of(cls, times_us: Sequence[int]) -> Quantiles:
        """Return the quantiles of `times_us`; 0.0 each without times."""
        ordered = sorted(times_us)
        if not ordered:
            return cls(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        p50, p95, p99, p999 = (ordered[-(-len(ordered) * permille // 1000) - 1] / 1000 for permille in PERMILLES)
        return cls(len(ordered), sum(ordered) / len(ordered) / 1000, p50, p95, p99, p999, ordered[-1] / 1000)


@attrs.define
class Level:
    """Track a number that rises and falls: its maximum, and its mean over time."""

    value: int = 0
    largest: int = 0
    _area: int = 0
    _since_us: int = 0

    def change(self, difference: int, now_us: int) -> None:
        """Add `difference` at `now_us`, which must not be earlier than the last change."""
        assert now_us >= self._since_us
        self._area += self.value * (now_us - self._since_us)
        self._since_us = now_us
        self.value += difference
        self.largest = max(self.largest, self.value)
        assert self.value >= 0

    def mean(self, end_us: int) -> float:
        """Return the mean value from 0 to `end_us`."""
        self.change(0, end_us)
        return self._area / end_us


@attrs.frozen(kw_only=True)
class KindReport:
    """Report the phases of one kind of request, in the order of PHASES, and the number of expired requests."""

    name: str
    phases: tuple[Quantiles, ...]
    expired_count: int

    def phase(self, name: str) -> Quantiles:
        """Return the quantiles of the phase called `name`, one of PHASES."""
        return self.phases[PHASES.index(name)]


@attrs.frozen(kw_only=True)
class PathReport:
    """Report one run: requests received and answered, thread utilisation and queue lengths.

    Ratios are 0..1; `blocked_ratio` is the share of the processors' time spent before a full request queue.
    """

    requests_per_second: int
    arrived_count: int
    answered_count: int
    handler_idle_ratio: float
    processor_idle_ratio: float
    blocked_ratio: float
    request_queue_mean: float
    request_queue_max: int
    response_queue_max: int
    purgatory_max: int
    kinds: tuple[KindReport, ...]
    all_kinds: KindReport
