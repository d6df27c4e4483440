"""A row of a study's table: the measures of one run, or the reason why it could not be made.

Constraints: a row depends on the parameters and the seed alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import attrs

from replication.studies.parameters import NAMES, Parameters

DONE: Final = "done"
REFUSED: Final = "refused"
BROKEN: Final = "broken"
FAILED: Final = "failed"


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


@attrs.frozen(kw_only=True)
class Row:
    """Hold one run: the study's name, the cell of its grid, the seed, the parameters, and what came of it.

    `status` is "done", "broken" (an invariant was broken; what was counted counts), "refused" (impossible parameters)
    or "failed" (the model or a policy raised, and nothing was counted); `reason` says why.
    """

    study: str
    cell: int
    seed: int
    parameters: Mapping[str, object]
    status: str
    reason: str = ""
    measures: Measures = Measures()

    @property
    def is_counted(self) -> bool:
        """Return whether the run came to its end, so that its measures count."""
        return self.status in (DONE, BROKEN)

    def cells(self) -> dict[str, object]:
        """Return the row by column."""
        return {
            "study": self.study,
            "cell": self.cell,
            "seed": self.seed,
            **{name: self.parameters.get(name) for name in NAMES},
            "status": self.status,
            "reason": self.reason,
            **attrs.asdict(self.measures),
        }


def _columns() -> Mapping[str, type]:
    defaults = Parameters()
    return MappingProxyType(
        {
            "study": str,
            "cell": int,
            "seed": int,
            **{name: type(getattr(defaults, name)) for name in NAMES},
            "status": str,
            "reason": str,
            **{field.name: type(field.default) for field in attrs.fields(Measures)},
        }
    )


COLUMNS: Final = _columns()
"""The columns of a study's table, with the types of their values."""


def with_latencies(measures: Measures, found: Iterable[int]) -> Measures:
    """Return the measures with the four columns of latencies."""
    ordered = sorted(found)
    if not ordered:
        return measures
    last = len(ordered) - 1
    return attrs.evolve(
        measures,
        latency_mean_ms=round(sum(ordered) / len(ordered), 3),
        latency_p50_ms=ordered[last // 2],
        latency_p99_ms=ordered[(99 * last + 99) // 100],
        latency_max_ms=ordered[-1],
    )
