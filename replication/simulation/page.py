"""Write one simulated run as an HTML page: verdict, command, chart, partitions and planned faults.

One file, no script, nothing from outside; the same outcome gives the same bytes.
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

_PARTITION_HEADS: Final = (
    "partition",
    "leaders elected",
    "without a leader (s)",
    "under min.insync.replicas (s)",
    "committed (records)",
)


def to_html(outcome: Outcome, command: str, options_lines: Sequence[str]) -> str:
    """Return a run as an HTML page; `command` repeats the run, `options_lines` name its options."""
    title = heading(outcome)
    faults = [
        (f"{each.at_ms / 1_000:,.1f}", each.kind.name.lower(), str(each.target), f"{each.for_ms / 1_000:,.1f}")
        for each in outcome.plan
    ]
    return offline_page(
        title,
        tag("h1", f"A simulated cluster: {title}"),
        *_verdict(outcome),
        tag("p", "Made by ", tag("code", command), "; the same command gives the same page."),
        tag("p", *((line, tag("br")) for line in options_lines[:-1]), *options_lines[-1:], class_="quiet"),
        tag("figure", Markup("\n" + to_svg(outcome))),
        *table(_PARTITION_HEADS, _partition_rows(outcome)),
        *(table(("at (s)", "planned fault", "target", "for (s)"), faults, texts=(1,)) if faults else ()),
    )


def _verdict(outcome: Outcome) -> Iterator[Markup]:
    if not outcome.is_broken:
        yield tag("p", "Nothing is broken: every invariant held at every step, and the cluster became whole again.")
    if lost := lost_text(outcome):
        yield tag("p", f"But {lost}." if not outcome.is_broken else f"And {lost}.", class_="alert")
    for finding in outcome.findings[:10]:
        known = INVARIANTS.get(finding.code)
        yield tag("p", str(finding) + (f" ({known.name}: {known.statement})" if known else ""), class_="alert")
    acked = counted(outcome.durability.acked_count, "record")
    yield tag("p", f"{counted(outcome.event_count, 'event')}; acknowledged by all: {acked}.")


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
        seconds = (f"{each / 1_000:,.1f}" for each in (leaderless, short))
        yield str(partition), f"{elected:,}", *seconds, f"{highs[-1] if highs else 0:,}"
