"""One run as a page: the chart, and below it in words and numbers what the chart shows.

It decides what a reader who did not run it needs: the verdict first, the command and the options that make it again,
the chart, how each partition fared, every fault that was planned, and what the words mean.

Constraints: one file without scripts and without anything from outside, readable on paper, in light and in dark; the
same outcome gives the same bytes. What comes from data is escaped.

Left out: the history line by line, which the command prints.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from broker.ids import NO_LEADER
from replication.checkers import INVARIANTS
from replication.simulation.chart import heading, partition_notes, to_svg
from replication.simulation.run import Outcome

_STYLE: Final = (
    ":root{color-scheme:light dark}body{margin:0 auto;padding:2rem 1.5rem 4rem;max-width:78rem;background:var(--page);"
    "color:var(--ink);font:15px/1.5 system-ui,sans-serif}h1{margin:0;font-size:1.6rem}h2{margin:2.2rem 0 .5rem;"
    "font-size:1.15rem}p{max-width:50rem}.alert{color:var(--accent);font-weight:600}.quiet{color:var(--quiet)}"
    "figure{margin:1.5rem 0;overflow-x:auto}svg.run{display:block;width:100%;min-width:56rem}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.2rem 1.2rem .2rem 0;"
    "text-align:right;vertical-align:top}th{color:var(--quiet);font-weight:500;border-bottom:1px solid var(--rule)}"
    "td.t,th.t{text-align:left}code{font:.9em ui-monospace,monospace}"
    "@media print{body{max-width:none;padding:0}figure{overflow:visible}svg.run{min-width:0}}"
)


def to_html(outcome: Outcome, command: str, options_lines: Sequence[str]) -> str:
    """Return a run as an HTML page; `command` makes it again, `options_lines` tell what it was run with."""
    title = escape(heading(outcome))
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
        f"<h1>A simulated cluster: {title}</h1>",
        *_verdict(outcome),
        f"<p>Made by <code>{escape(command)}</code>; the same command gives the same page.</p>",
        f'<p class="quiet">{"<br>".join(map(escape, options_lines))}</p>',
        f"<figure>\n{to_svg(outcome)}</figure>",
        "<h2>Partitions</h2>",
        *_table(_PARTITION_HEADS, _partition_rows(outcome)),
        "<h2>Faults planned</h2>",
        *_faults(outcome),
        "<h2>What the words mean</h2>",
        _WORDS,
        "</body>\n</html>\n",
    ]
    return "\n".join(parts)


_PARTITION_HEADS: Final = (
    "partition",
    "leaders elected",
    "without a leader (s)",
    "under min.insync.replicas (s)",
    "committed (records)",
)
_WORDS: Final = (
    "<p>A <b>leader</b> takes writes; a replica is <b>in sync</b> if it has what the leader has, or had it a short "
    "while ago (replica.lag.time.max.ms). A record is <b>committed</b> when all that are in sync have it: then "
    "consumers see it and a producer with acks=all is told. With fewer in sync than <b>min.insync.replicas</b> nothing "
    "more is committed. A <b>fault planned</b> is what was to happen; a broker that was down already is not struck "
    "again.</p>"
)


def _verdict(outcome: Outcome) -> Iterator[str]:
    if outcome.is_clean:
        yield "<p>Nothing is broken: every invariant held at every step, and the cluster became whole again.</p>"
    for finding in outcome.findings[:10]:
        yield f'<p class="alert">{escape(str(finding))}</p>'
        if (known := INVARIANTS.get(finding.code)) is not None:
            yield f'<p class="quiet">{finding.code}, {escape(known.name)}: {escape(known.statement)}</p>'
    report = outcome.durability
    by_all = sum(record.acks == -1 for record in report.lost)
    yield (
        f"<p>{outcome.event_count:,} events in {outcome.simulated_ms / 1_000:,.0f} s; of {report.acked_count:,} "
        f"records acknowledged by all {by_all:,} are lost; {outcome.loss_count} brokers lost records, "
        f"{outcome.unclean_count} elections were unclean.</p>"
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


def _faults(outcome: Outcome) -> Iterator[str]:
    if not outcome.plan:
        yield "<p>None.</p>"
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
    yield from _table(("at (s)", "kind", "target", "for (s)", "what happens"), rows, texts=(1, 4))


def _table(heads: Sequence[str], rows: Iterator[tuple[str, ...]], texts: tuple[int, ...] = ()) -> Iterator[str]:
    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=t' if place in texts else ''}>{escape(each)}</{tag}>" for place, each in enumerate(row)
        )

    yield f"<table>\n<thead><tr>{cells(heads, 'th')}</tr></thead>\n<tbody>"
    for row in rows:
        yield f"<tr>{cells(row, 'td')}</tr>"
    yield "</tbody>\n</table>"
