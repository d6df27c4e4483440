"""Choose the moments of a metadata log to show, and return the cluster's metadata at each.

What it decides: which records a moment includes. An offset includes its record and all before it; a time includes all
records appended at or before it. A moment beyond the end means the end; a moment before the beginning is refused.
If the user names no moments, `live_moments` chooses them: the last offset before each change of the set of live brokers
(registered and not fenced), and the end of the log.

Constraints:
- A chosen moment never shows half of a change. The controller fences a broker and moves its leaders in one append, so
  the moment before the change is the end of the append before, not the record before.
- Offsets that the user names are taken as they are, even in the middle of an append.
- A snapshot at the beginning of a log counts as an append of its own: its live brokers are those before the first
  change. A cluster without any live broker is a moment like any other.

How: two passes over the log. The first only looks for moments and builds no image, since the cost of an image grows
with the cluster.

Example: images_at(replay, (Moment(time_ms=TimeMs(1_700_000_000_000)),))

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from broker.errors import UsageError
from broker.ids import INT64_MAX, BrokerId, Offset
from broker.units import TimeMs
from log.metadata.deltas import BrokerDelta
from log.metadata.image import MetadataImage
from log.metadata.replay import NO_OFFSET, Placed, Replay

LIVE_MOMENTS_MAX: Final = 24  # What a report shows side by side.


@attrs.frozen(kw_only=True)
class Moment:
    """Name a moment in a metadata log, by offset or by time."""

    offset: Offset | None = None
    time_ms: TimeMs | None = None

    def __attrs_post_init__(self) -> None:
        if (self.offset is None) == (self.time_ms is None):
            raise UsageError("a moment is an offset or a time, one of the two")

    def is_past(self, place: Placed) -> bool:
        """Return whether the moment lies before a record of the log."""
        if self.offset is not None:
            return place.offset > self.offset
        assert self.time_ms is not None
        return place.time_ms > self.time_ms

    def __str__(self) -> str:
        return f"time {self.time_ms}" if self.offset is None else f"offset {self.offset}"


END: Final = Moment(offset=Offset(INT64_MAX))
"""The last record there is."""


def images_at(replay: Replay, moments: Sequence[Moment]) -> Iterator[MetadataImage]:
    """Yield the image at each moment; the moments must ascend.

    Raises UsageError for a moment before the previous one or before the beginning, and the errors of `Replay.steps`.
    """
    for moment in moments:
        for _ in replay.steps(until=moment.is_past):
            pass
        if (replay.entry_count == 0 and not replay.is_done) or moment.is_past(replay):
            raise UsageError(f"{moment} lies before the beginning of the log, or before the moment named before it")
        yield replay.image()


def live_moments(replay: Replay) -> tuple[Moment, ...]:
    """Return the moments right before the set of live brokers changed, and the end: at most the last 24.

    Changes while no topic exists, and those that a snapshot's records make, are ignored.
    Raises the errors of `Replay.steps`.
    """
    live: frozenset[BrokerId] = frozenset()
    found: list[Moment] = []
    settled, latest, time_ms, in_snapshot = NO_OFFSET, NO_OFFSET, TimeMs(-1), False
    for step in replay.steps():
        if step.time_ms != time_ms or step.from_snapshot != in_snapshot:
            settled, time_ms, in_snapshot = latest, step.time_ms, step.from_snapshot
        latest = step.offset
        if not any(isinstance(delta, BrokerDelta) for delta in step.deltas):
            continue
        before, live = live, frozenset(broker.id for broker in replay.state.brokers.values() if not broker.fenced)
        if step.from_snapshot or live == before or not replay.state.has_topics or settled == NO_OFFSET:
            continue
        moment = Moment(offset=settled)
        if moment not in found[-1:]:
            found.append(moment)
    return (*found[1 - LIVE_MOMENTS_MAX :], END)
