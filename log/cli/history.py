"""Run `brokerside log history`, which prints the events of a cluster, read from its metadata log.

Source: ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import click

from broker.cli import EXIT_REFUSED, takes
from broker.errors import CorruptDataError
from broker.units import DurationMs
from log.cli.output import JSON, KEEP_GOING, print_error, print_lines
from log.metadata.durations import ClusterHistory, Summary
from log.metadata.history import Event
from log.metadata.reading import RejectedRecords
from log.metadata.replay import Replay, replay_notes
from log.tools.sources import metadata_files
from log.tools.timestamps import duration_text, time_text

SHOWN_MAX: Final = 10
_HEADING: Final = (
    f"{'leaderless':>14} {'under min ISR':>14} {'under-repl.':>14} {'ISR shrunk':>10} {'unclean':>8}  partition"
)


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


def _first_of(count: int) -> str:
    return f"the first {SHOWN_MAX} of {count:,}" if count > SHOWN_MAX else f"{count:,}"


@attrs.frozen(kw_only=True)
class HistoryCommand:
    """Hold the options of `brokerside log history`: the metadata log, and the topics to print (none: all)."""

    path: Path
    topics: tuple[str, ...]
    is_summary: bool
    keep_going: bool
    as_json: bool


@click.command("history")
@click.argument("path", type=click.Path(exists=True, path_type=Path), metavar="PATH")
@click.option(
    "--topic", "topics", multiple=True, metavar="TOPIC", help="Count and print only this topic's events; repeatable."
)
@click.option("--summary", "is_summary", is_flag=True, help="Print only the summary, not the events.")
@KEEP_GOING
@JSON
@takes(HistoryCommand)
def history_command(options: HistoryCommand) -> int:
    """Print the events of a cluster, read from its metadata log.

    PATH is __cluster_metadata-0, a log directory that has it, a segment of it, or a snapshot (*.checkpoint).

    Events are leader elections (unclean ones too), ISR changes, brokers fenced and for how long, reassignments,
    topics and settings. The summary says for how long partitions were leaderless, under min ISR or
    under-replicated; with --topic it counts only the named topics.

    \b
    brokerside log history /var/lib/kafka/__cluster_metadata-0
    brokerside log history 00000000000000000000.log --topic orders --json
    """
    rejected = RejectedRecords() if options.keep_going else None
    replay = Replay(metadata_files(options.path), rejected=rejected)
    history = ClusterHistory(replay)
    events = (event for event in history.events() if not options.topics or event.topic in options.topics)
    lines = (
        json.dumps(event_row(each), ensure_ascii=False) if options.as_json else event_line(each) for each in events
    )
    try:
        # The events are read even if they are not printed: the summary needs them.
        print_lines(line for line in lines if not options.is_summary)
    except CorruptDataError as error:
        print_error(str(error))
        return EXIT_REFUSED
    summary, notes = history.summary(options.topics), tuple(replay_notes(replay, rejected))
    if options.as_json:
        print_lines([json.dumps(summary_row(summary, notes), ensure_ascii=False)])
    else:
        print_lines(summary_lines(summary))
    for note in notes:
        print_error(note)
    problems = [*replay.disagreements, *map(str, () if rejected is None else rejected.errors)]
    for line in problems:
        print_error(line)
    return EXIT_REFUSED if problems else 0
