"""Count what happens in one run of a study."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

SAMPLE_MS: Final = 100
"""How often availability is looked at, in ms of the virtual clock."""


@attrs.define
class Availability:
    """Count the time of partitions, looked at every SAMPLE_MS: all of it, without a leader, and without writes."""

    partition_ms: int = 0
    leaderless_ms: int = 0
    unavailable_ms: int = 0

    def note(self, *, has_leader: bool, takes_writes: bool) -> None:
        """Count SAMPLE_MS more of a partition's time, by whether it has a leader and takes writes."""
        self.partition_ms += SAMPLE_MS
        self.leaderless_ms += SAMPLE_MS * (not has_leader)
        self.unavailable_ms += SAMPLE_MS * (not takes_writes)


@attrs.frozen(kw_only=True)
class Measures:
    """Hold what was counted in one run.

    Writes: `write_count`, `acked_all` and `acked_one` (acknowledged with acks=all and acks=1), of these lost `lost_all`
    and `lost_one`; `lost_to_unclean`, `lost_to_last_known` and `lost_to_other` say to what election, the last also if
    to none. `duplicate_count` counts values that stand in a log more than once.

    Time: `unavailable_ms` is the time, summed over partitions, in which no write with the run's acks could have been
    acknowledged; `leaderless_ms` that in which there was no leader; `partition_ms` all time. All in steps of SAMPLE_MS.
    Latencies are from the first send to the acknowledgement, in ms, of acknowledged writes; -1 if there were none.

    `clean_elections`, `elr_elections` and `unclean_elections` count elections of another leader by their kind, those of
    the last known leader among the unclean; `failure_count` failures and restarts that were drawn, `loss_count`
    those that lost records. `message_count` counts all messages that arrived.
    """

    write_count: int = 0
    acked_all: int = 0
    acked_one: int = 0
    lost_all: int = 0
    lost_one: int = 0
    lost_to_unclean: int = 0
    lost_to_last_known: int = 0
    lost_to_other: int = 0
    duplicate_count: int = 0
    unavailable_ms: int = 0
    leaderless_ms: int = 0
    partition_ms: int = 0
    latency_mean_ms: float = -1.0
    latency_p50_ms: int = -1
    latency_p99_ms: int = -1
    latency_max_ms: int = -1
    clean_elections: int = 0
    elr_elections: int = 0
    unclean_elections: int = 0
    failure_count: int = 0
    loss_count: int = 0
    message_count: int = 0

    def with_latencies(self, found: Iterable[int]) -> Measures:
        """Return the measures with the four columns of latencies."""
        ordered = sorted(found)
        if not ordered:
            return self
        last = len(ordered) - 1
        return attrs.evolve(
            self,
            latency_mean_ms=round(sum(ordered) / len(ordered), 3),
            latency_p50_ms=ordered[last // 2],
            latency_p99_ms=ordered[(99 * last + 99) // 100],
            latency_max_ms=ordered[-1],
        )
