"""One run as a picture: what struck which broker, who led when, how many were in sync, how far records were committed.

It decides what a reader sees at a glance, from the top down on one axis of time: a row a broker with the faults
that were planned for it; then for each partition the leaders (one colour a broker, and its number), the size of the
ISR with min.insync.replicas as a dashed line, and the high watermark. What was found broken is a heavy line across
all of it. Of more than `PANEL_COUNT_MAX` partitions each is one band: the leaders, with a stripe below while the
ISR is too small.

Constraints: SVG without scripts and without anything from outside; the same outcome gives the same bytes; its size is
bounded by the width of the picture and not by the length of the run. Colours are those of Okabe and Ito, which people
of every colour vision can tell apart; light and dark follow the reader's choice.

How changes closer than half a pixel are drawn: of bands the last one, of steps the least, the greatest and the last.

Left out: zooming; partitions beyond `BAND_COUNT_MAX`, of which those that changed most are shown.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape

from broker.ids import NO_LEADER
from replication.simulation.chart_axis import LEFT, RIGHT, WIDTH, TimeAxis, stepped
from replication.simulation.chart_faults import fault_rows, rows_height
from replication.simulation.recording import StateNote
from replication.simulation.run import Outcome

PANEL_COUNT_MAX: Final = 8
BAND_COUNT_MAX: Final = 200
_COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_TOP: Final = 98
_PANEL: Final = 168
_BAND: Final = 18
STYLE: Final = (
    ":root{--page:#ffffff;--ink:#1c2126;--quiet:#59636e;--rule:#dde1e6;--accent:#b3400b;--line:#1f5f99;--none:#e3e6ea}"
    "@media(prefers-color-scheme:dark){:root{--page:#14171a;--ink:#e4e7ea;--quiet:#9aa5b0;--rule:#30363d;"
    "--accent:#ff9457;--line:#7db8ee;--none:#3a4048}}"
    ".run{font:12px system-ui,sans-serif;background:var(--page)}.run text{fill:var(--ink)}.run .q{fill:var(--quiet)}"
    ".run .h{font-size:14px;font-weight:600}.run .on{fill:#000000;font-size:11px}.run .axis{stroke:var(--rule)}"
    ".run .min{stroke:var(--quiet);stroke-dasharray:4 3}.run .step{fill:none;stroke:var(--ink);stroke-width:1.4}"
    ".run .high{fill:none;stroke:var(--line);stroke-width:1.6}.run .none{fill:var(--none)}.run .low{fill:var(--accent)}"
    ".run .broken{stroke:var(--accent);stroke-width:2}.run .tell{fill:var(--accent);font-weight:600}"
    ".run .gone{fill:var(--ink)}.run .cut{fill:none;stroke:var(--ink);stroke-width:1.2}.run .slow{fill:var(--quiet)}"
    ".run .once{fill:none;stroke:var(--quiet);stroke-width:1.6}"
    + "".join(f".run .b{number}{{fill:{colour}}}" for number, colour in enumerate(_COLOURS))
)


def to_svg(outcome: Outcome) -> str:
    """Return the picture of a run as an SVG document."""
    options, axis = outcome.options, TimeAxis(int(outcome.simulated_ms))
    shown = _shown(outcome)
    is_full = options.partition_count <= PANEL_COUNT_MAX
    panels_top = _TOP + rows_height(outcome)
    bottom = panels_top + (_PANEL if is_full else _BAND) * len(shown)
    height = bottom + (60 if len(shown) < options.partition_count else 40)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="run" viewBox="0 0 {LEFT + WIDTH + RIGHT} {height}" '
        f'role="img" aria-label="{escape(heading(outcome))}">',
        f"<title>{escape(heading(outcome))}</title><style>{STYLE}</style>",
        '<rect width="100%" height="100%" style="fill:var(--page)"/>',
        f'<text class="h" x="16" y="24">{escape(heading(outcome))}</text>',
        *_legend(outcome),
        *axis.lines(_TOP - 14, bottom),
        *fault_rows(outcome, axis, _TOP),
    ]
    for place, partition in enumerate(shown):
        if is_full:
            parts.extend(_panel(outcome, axis, partition, panels_top + place * _PANEL))
        else:
            parts.extend(_band(outcome, axis, partition, panels_top + place * _BAND))
    if len(shown) < options.partition_count:
        rest = options.partition_count - len(shown)
        parts.append(
            f'<text class="q" x="{LEFT}" y="{bottom + 46}">{rest} partitions that changed less are not shown</text>'
        )
    parts.extend(_findings(outcome, axis, bottom))
    return "\n".join([*parts, "</svg>", ""])


def heading(outcome: Outcome) -> str:
    """Return what a run was, and its verdict, in one line."""
    broken = "" if outcome.is_clean else f"BROKEN: {outcome.findings[0].code}"
    return f"seed {outcome.options.seed}, {outcome.options.name}, {outcome.simulated_ms / 1_000:g} s: " + (
        broken or "nothing is broken"
    )


def _shown(outcome: Outcome) -> list[int]:
    count = outcome.options.partition_count
    if count <= BAND_COUNT_MAX:
        return list(range(count))
    changes = dict.fromkeys(range(count), 0)
    for note in outcome.recording.states:
        changes[note.partition] = changes.get(note.partition, 0) + 1
    return sorted(sorted(changes, key=lambda each: (-changes[each], each))[:BAND_COUNT_MAX])


def _legend(outcome: Outcome) -> Iterator[str]:
    yield '<text class="q" x="16" y="50">leaders</text>'
    x = LEFT
    for broker in range(min(outcome.options.brokers, len(_COLOURS))):
        yield f'<rect class="b{broker}" x="{x}" y="39" width="14" height="14"/>'
        yield f'<text x="{x + 19}" y="50">broker {broker}</text>'
        x += 84
    if outcome.options.brokers > len(_COLOURS):
        yield f'<text class="q" x="{x}" y="50">then the colours begin again</text>'
        x += 186
    yield f'<rect class="none" x="{x}" y="39" width="14" height="14"/><text x="{x + 19}" y="50">nobody</text>'
    if outcome.options.partition_count > PANEL_COUNT_MAX:
        yield f'<rect class="low" x="{LEFT}" y="63" width="14" height="3"/>'
        yield f'<text class="q" x="{LEFT + 19}" y="68">fewer in sync than min.insync.replicas</text>'


def partition_notes(outcome: Outcome, partition: int) -> list[tuple[StateNote, int]]:
    """Return the states of a partition, each with its end; none for one that could not be made."""
    notes = [note for note in outcome.recording.states if note.partition == partition]
    ends = [int(note.at_ms) for note in notes[1:]] + [int(outcome.simulated_ms)] * bool(notes)
    return list(zip(notes, ends, strict=True))


def _panel(outcome: Outcome, axis: TimeAxis, partition: int, top: int) -> Iterator[str]:
    notes = partition_notes(outcome, partition)
    yield f'<path class="axis" d="M16,{top + 6} H{LEFT + WIDTH}"/>'
    yield f'<text class="h" x="16" y="{top + 32}">partition {partition}</text>'
    yield f'<text class="q" x="{LEFT - 10}" y="{top + 32}" text-anchor="end">led by</text>'
    yield from _leaders(notes, axis, top + 18, 20)
    yield from _isr(outcome, notes, axis, top + 92)
    yield from _highs(outcome, axis, partition, top + 156)


def _band(outcome: Outcome, axis: TimeAxis, partition: int, top: int) -> Iterator[str]:
    notes = partition_notes(outcome, partition)
    yield f'<text class="q" x="{LEFT - 10}" y="{top + 14}" text-anchor="end">partition {partition}</text>'
    yield from _leaders(notes, axis, top + 4, 8)
    least = outcome.options.settings.min_isr
    for note, end_ms in notes:
        left, width = axis.x(note.at_ms), axis.x(end_ms) - axis.x(note.at_ms)
        if len(note.state.isr) < least and width >= 0.5:
            yield f'<rect class="low" x="{left}" y="{top + 13}" width="{width:.1f}" height="3"/>'


def _leaders(notes: list[tuple[StateNote, int]], axis: TimeAxis, top: int, height: int) -> Iterator[str]:
    merged: list[tuple[int, int, int]] = []
    for note, end_ms in notes:
        leader = int(note.state.leader)
        if merged and (merged[-1][0] == leader or axis.x(merged[-1][2]) - axis.x(merged[-1][1]) < 0.5):
            merged[-1] = (leader, merged[-1][1], end_ms)
        else:
            merged.append((leader, int(note.at_ms), end_ms))
    for leader, at_ms, end_ms in merged:
        left, width = axis.x(at_ms), axis.x(end_ms) - axis.x(at_ms)
        kind = "none" if leader == NO_LEADER else f"b{leader % len(_COLOURS)}"
        yield f'<rect class="{kind}" x="{left}" y="{top}" width="{width:.1f}" height="{height}"/>'
        name = "nobody" if leader == NO_LEADER else str(leader)
        if height >= 16 and width > 7 * len(name) + 6:
            style = "q" if leader == NO_LEADER else "on"
            yield f'<text class="{style}" x="{left + 4}" y="{top + 14}">{name}</text>'


def _isr(outcome: Outcome, notes: list[tuple[StateNote, int]], axis: TimeAxis, bottom: int) -> Iterator[str]:
    unit = 40 / max(outcome.options.replication_factor, *(len(note.state.isr) for note, _ in notes), 1)
    steps = [(axis.x(note.at_ms), round(bottom - unit * len(note.state.isr), 1)) for note, _ in notes]
    least = round(bottom - unit * outcome.options.settings.min_isr, 1)
    yield f'<path class="axis" d="M{LEFT},{bottom} H{LEFT + WIDTH}"/>'
    yield f'<path class="min" d="M{LEFT},{least} H{LEFT + WIDTH}"/>'
    yield f'<text class="q" x="{LEFT - 10}" y="{bottom - 4}" text-anchor="end">in sync (replicas)</text>'
    yield f'<text class="q" x="{LEFT + WIDTH + 6}" y="{least + 4}">min {outcome.options.settings.min_isr}</text>'
    yield f'<path class="step" d="{stepped(steps, LEFT + WIDTH)}"/>'


def _highs(outcome: Outcome, axis: TimeAxis, partition: int, bottom: int) -> Iterator[str]:
    notes = [note for note in outcome.recording.highs if note.partition == partition]
    most = max([1, *(note.high_watermark for note in notes)])
    steps = [(axis.x(note.at_ms), round(bottom - 46 * note.high_watermark / most, 1)) for note in notes]
    yield f'<path class="axis" d="M{LEFT},{bottom} H{LEFT + WIDTH}"/>'
    yield f'<text class="q" x="{LEFT - 10}" y="{bottom - 4}" text-anchor="end">committed (records)</text>'
    yield f'<text class="q" x="{LEFT + WIDTH + 6}" y="{bottom - 42}">{most:,}</text>'
    yield f'<path class="high" d="{stepped([(LEFT, bottom), *steps], LEFT + WIDTH)}"/>'


def _findings(outcome: Outcome, axis: TimeAxis, bottom: int) -> Iterator[str]:
    seen: set[str] = set()
    for finding in outcome.findings:
        if finding.code not in seen:
            seen.add(finding.code)
            x = axis.x(finding.at_ms)
            yield f'<path class="broken" d="M{x},{_TOP - 14} V{bottom}"/>'
            yield f'<text class="tell" x="{x}" y="{_TOP - 18}" text-anchor="middle">{finding.code}</text>'
