"""Which moments of a metadata log are shown, and how the cluster stood at each.

What it decides: what "at" means. At an offset: that record and all before it count. At a time: all records that were
appended at or before it. A moment beyond the end is the end; one before the beginning is refused.

Without moments named, a log is told by its brokers: each time the set of live ones (registered, not fenced)
changes, how things stood at the end of the time before, and how they stand in the end. At the end, as a change of
brokers takes some seconds to settle.

Constraints: no moment that is found so shows half of a change: the controller moves the leaders off a broker in the
append that fences it, so the moment before is the end of the append before. Offsets that are asked for are taken as
they are. A snapshot that a log begins with is the moment before the first append behind it, unless that has its time.

How: two passes over the log, the first of which only looks for moments: an image costs as much as the cluster is
large.

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
    """An offset or a time, one of the two."""

    offset: Offset | None = None
    time_ms: TimeMs | None = None

    def __attrs_post_init__(self) -> None:
        if (self.offset is None) == (self.time_ms is None):
            raise UsageError("a moment is an offset or a time, one of the two")

    def is_past(self, place: Placed) -> bool:
        """Tell whether the moment lies before a place in the log."""
        if self.offset is not None:
            return place.offset > self.offset
        assert self.time_ms is not None
        return place.time_ms > self.time_ms

    def __str__(self) -> str:
        return f"time {self.time_ms}" if self.offset is None else f"offset {self.offset}"


END: Final = Moment(offset=Offset(INT64_MAX))
"""The last record there is."""


def images_at(replay: Replay, moments: Sequence[Moment]) -> Iterator[MetadataImage]:
    """Yield the image at each moment, in the order given; no moment may lie before the one before it.

    Raises UsageError for a moment that does, or that lies before the beginning, and what `Replay.steps` raises.
    """
    for moment in moments:
        for _ in replay.steps(until=moment.is_past):
            pass
        if (replay.entry_count == 0 and not replay.is_done) or moment.is_past(replay):
            raise UsageError(f"{moment} lies before the beginning of the log, or before the moment named before it")
        yield replay.image()


def live_moments(replay: Replay) -> tuple[Moment, ...]:
    """Return the last moments before the set of live brokers changed, at most 24 with the end, which comes last.

    Only times are looked at in which there was a topic. Raises what `Replay.steps` raises.
    """
    live: frozenset[BrokerId] = frozenset()
    found: list[Moment] = []
    settled, latest, time_ms = NO_OFFSET, NO_OFFSET, TimeMs(-1)
    for step in replay.steps():
        if step.time_ms != time_ms:
            settled, time_ms = latest, step.time_ms
        latest = step.offset
        if not any(isinstance(delta, BrokerDelta) for delta in step.deltas):
            continue
        before, live = live, frozenset(broker.id for broker in replay.state.brokers.values() if not broker.fenced)
        moment = Moment(offset=settled)
        if before and live != before and replay.state.has_topics and settled != NO_OFFSET and moment not in found[-1:]:
            found.append(moment)
    return (*found[1 - LIVE_MOMENTS_MAX :], END)
