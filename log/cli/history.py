"""Run `brokerside log history`, which prints the events of a cluster, read from its metadata log.

Source: ours.
"""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import click

from broker.cli import EXIT_REFUSED, takes
from broker.errors import CorruptDataError
from log.cli.options import JSON, KEEP_GOING
from log.cli.output import print_error, print_lines
from log.metadata.durations import ClusterHistory
from log.metadata.reading import RejectedRecords
from log.metadata.replay import Replay
from log.metadata.replay_notes import replay_notes
from log.tools.history_text import event_line, event_row, summary_lines, summary_row
from log.tools.sources import metadata_files


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
def command(options: HistoryCommand) -> int:
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
