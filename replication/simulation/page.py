"""Write one simulated run as an HTML page: verdict, command, chart, partitions, planned faults, glossary.

What it decides: the order for a reader who did not run it: the verdict first, then the command and the options that
repeat the run, the chart, the figures of each partition, every planned fault, and the meaning of the words.

Constraints: one file, no script, nothing from outside, readable on paper; the same outcome gives the same bytes; every
text is escaped.

Left out: the history line by line, which the command prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from broker.drawing.element import Markup, tag
from broker.drawing.page import offline_page, table
from broker.ids import NO_LEADER
from broker.wording import counted
from replication.checkers import INVARIANTS
from replication.simulation.chart import heading, partition_notes, to_svg
from replication.simulation.run import Outcome
from replication.simulation.verdict import lost_text


def to_html(outcome: Outcome, command: str, options_lines: Sequence[str]) -> str:
    """Return a run as an HTML page; `command` repeats the run, `options_lines` name its options."""
    title = heading(outcome)
    return offline_page(
        title,
        tag("h1", f"A simulated cluster: {title}"),
        *_verdict(outcome),
        tag("p", "Made by ", tag("code", command), "; the same command gives the same page."),
        tag("p", *((line, tag("br")) for line in options_lines[:-1]), *options_lines[-1:], class_="quiet"),
        tag("figure", Markup("\n" + to_svg(outcome))),
        tag("h2", "Partitions"),
        *table(_PARTITION_HEADS, _partition_rows(outcome)),
        tag("h2", "Faults planned"),
        *_faults(outcome),
        tag("h2", "What the words mean"),
        _WORDS,
    )


_PARTITION_HEADS: Final = (
    "partition",
    "leaders elected",
    "without a leader (s)",
    "under min.insync.replicas (s)",
    "committed (records)",
)
_WORDS: Final = tag(
    "p",
    *("A ", tag("b", "leader"), " takes writes; a replica is ", tag("b", "in sync")),
    " if it has what the leader has, or had it a short while ago (replica.lag.time.max.ms). A record is ",
    *(tag("b", "committed"), " when all that are in sync have it: then consumers see it and a producer with acks=all "),
    *("is told. With fewer in sync than ", tag("b", "min.insync.replicas"), " nothing more is committed. A "),
    *(tag("b", "fault planned"), " is what was to happen; a broker that was down already is not struck again."),
)


def _verdict(outcome: Outcome) -> Iterator[Markup]:
    if not outcome.is_broken:
        yield tag("p", "Nothing is broken: every invariant held at every step, and the cluster became whole again.")
    if lost := lost_text(outcome):
        yield tag("p", f"But {lost}." if not outcome.is_broken else f"And {lost}.", class_="alert")
    for finding in outcome.findings[:10]:
        yield tag("p", str(finding), class_="alert")
        if (known := INVARIANTS.get(finding.code)) is not None:
            yield tag("p", f"{finding.code}, {known.name}: {known.statement}", class_="quiet")
    report = outcome.durability
    by_all = len(report.lost_by_all)
    yield tag(
        "p",
        f"{counted(outcome.event_count, 'event')} in {outcome.simulated_ms / 1_000:,.0f} s; "
        f"acknowledged by all: {counted(report.acked_count, 'record')}, of these lost {by_all:,}; "
        f"{counted(outcome.loss_count, 'broker')} lost records, "
        f"{counted(outcome.unclean_count, 'unclean election')}.",
    )


def _partition_rows(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    for partition in range(outcome.options.partition_count):
        leaderless = short = elected = 0
        leader = NO_LEADER
        for note, end_ms in partition_notes(outcome, partition):
            state = note.state
            leaderless += 0 if state.has_leader else end_ms - note.at_ms
            short += end_ms - note.at_ms if len(state.isr) < outcome.options.settings.min_isr else 0
            elected += state.has_leader and state.leader != leader
            leader = state.leader
        highs = [note.high_watermark for note in outcome.recording.highs if note.partition == partition]
        yield (
            str(partition),
            f"{elected:,}",
            f"{leaderless / 1_000:,.1f}",
            f"{short / 1_000:,.1f}",
            f"{highs[-1] if highs else 0:,}",
        )


def _faults(outcome: Outcome) -> Iterator[Markup]:
    if not outcome.plan:
        yield tag("p", "None.")
        return
    rows = (
        (
            f"{fault.at_ms / 1_000:,.1f}",
            fault.kind.name.lower().replace("_", " "),
            str(fault.target),
            f"{fault.for_ms / 1_000:,.1f}",
            fault.kind.value,
        )
        for fault in outcome.plan
    )
    yield from table(("at (s)", "kind", "target", "for (s)", "what happens"), rows, texts=(1, 4))
