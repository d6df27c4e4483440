"""Print a metadata log's events and summary as lines of text and as JSON rows.

What it decides: the lines of `brokerside log history`: one per event, then the summary.

Constraints: times are UTC, in ISO 8601; durations are printed in the two largest units, and in ms for programs.

Example: 2026-11-21T18:24:23.147Z offset 128 orders-3: ISR shrunk: 1, 2, 3 → 1, 2; left: 3

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
import numpy as np

from broker.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, DurationMs, TimeMs
from log.metadata.durations import Summary
from log.metadata.events import Event

SHOWN_MAX: Final = 10
_HEADING: Final = (
    f"{'leaderless':>14} {'under min ISR':>14} {'under-repl.':>14} {'ISR shrunk':>10} {'unclean':>8}  partition"
)
_UNITS: Final = ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (SECOND_MS, "s"), (1, "ms"))


def event_line(event: Event) -> str:
    """Return one event as one line of text."""
    detail = f": {event.detail}" if event.detail else ""
    lasted = "" if event.duration_ms is None else f" (after {duration_text(event.duration_ms)})"
    if event.duration_ms_min is not None:
        lasted = f" (after {duration_text(event.duration_ms_min)} at least)"
    return f"{time_text(event.time_ms)} offset {event.offset} {event.subject}: {event.what.value}{detail}{lasted}"


def event_row(event: Event) -> dict[str, Any]:
    """Return one event as a JSON row, without the fields that it lacks."""
    row = {"type": "event", **attrs.asdict(event), "what": event.what.value, "time": time_text(event.time_ms)}
    return {name: value for name, value in row.items() if value is not None}


def summary_lines(summary: Summary) -> Iterator[str]:
    """Yield the summary: counts of events, the worst partitions, the brokers fenced longest."""
    span = duration_text(DurationMs(summary.end_ms - summary.start_ms))
    yield f"{span}, from {time_text(summary.start_ms)} to {time_text(summary.end_ms)}"
    for what, count in summary.event_counts:
        yield f"{count:>8,} {what.value}"
    if summary.partitions:
        yield f"Partitions worst off, {_first_of(len(summary.partitions))}:"
        yield _HEADING
    for each in summary.partitions[:SHOWN_MAX]:
        times = (each.leaderless_ms, each.under_min_isr_ms, each.under_replicated_ms)
        shown = " ".join(f"{duration_text(time):>14}" for time in times)
        yield f"{shown} {each.isr_shrink_count:>10} {each.unclean_election_count:>8}  {each.topic}-{each.partition}"
    if summary.brokers:
        yield f"Brokers fenced, {_first_of(len(summary.brokers))}:"
    for broker in summary.brokers[:SHOWN_MAX]:
        yield f"{duration_text(broker.fenced_ms):>14} {broker.fenced_count:>5} ×  broker {broker.broker}"


def summary_row(summary: Summary, notes: Sequence[str]) -> dict[str, Any]:
    """Return the summary as a JSON row, with all partitions and brokers that were in a bad state, and the notes."""
    return {
        "type": "summary",
        "start_ms": summary.start_ms,
        "end_ms": summary.end_ms,
        "events": {what.value: count for what, count in summary.event_counts},
        "partitions": [attrs.asdict(each) for each in summary.partitions],
        "brokers": [attrs.asdict(each) for each in summary.brokers],
        "notes": list(notes),
    }


def time_text(time_ms: TimeMs) -> str:
    """Return any time in ms as UTC text, such as 2026-11-21T18:24:23.147Z."""
    return f"{np.datetime64(time_ms, 'ms')}Z"


def duration_text(duration_ms: DurationMs) -> str:
    """Return a duration in ms in its two largest units: 1 min 20 s."""
    for place, (size_ms, name) in enumerate(_UNITS):
        if abs(duration_ms) >= size_ms:
            count, rest = divmod(duration_ms, size_ms)
            smaller_ms, smaller = _UNITS[min(place + 1, len(_UNITS) - 1)]
            return f"{count} {name} {rest // smaller_ms} {smaller}" if rest >= smaller_ms else f"{count} {name}"
    return "0 ms"


def _first_of(count: int) -> str:
    return f"the first {SHOWN_MAX} of {count:,}" if count > SHOWN_MAX else f"{count:,}"
