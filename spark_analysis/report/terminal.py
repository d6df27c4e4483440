"""Summarise the report in ten lines for a terminal, and as JSON for programs.

How: the lines answer the page's first four questions in its order. Names from dumps go through `visible` (no control
sequence reaches the terminal) and into `rich.text.Text` (no square bracket of theirs is markup).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import attrs
from rich.console import Group, RenderableType
from rich.text import Text

from broker.known import Known
from spark_analysis.report.advice import advice_json, next_steps, rack_limit_notes
from spark_analysis.report.answers import answer_lines, answers_json
from spark_analysis.report.commands import commands_of
from spark_analysis.report.distance import quantile
from spark_analysis.report.figures import count, percent, plural, ppm, share_of
from spark_analysis.report.markup import visible
from spark_analysis.report.model import QUANTITIES, ClusterDetail, ClusterRow, Report
from spark_analysis.report.moments import moments_json
from spark_analysis.report.now import missing_most, rackless_count, state_count
from spark_analysis.report.numbers import cluster_json, states_json
from spark_analysis.report.overview import files_lines, no_findings, total_of, what_in_words
from spark_analysis.report.recovery import must_return, recovery_steps
from spark_analysis.report.since import courses, since_json, since_lines
from spark_analysis.report.states import STATES

_WORST_SHOWN: Final = 3
LISTED_MAX: Final = 100
_STEPS_SHOWN: Final = 4
LINE_LENGTH_MAX: Final = 118
"""The most characters in a line on a terminal."""
_LINES_MAX: Final = 10
_KNOWN_SHOWN: Final = 5
_NAME_LENGTH_MAX: Final = 80
_NAMED: Final = re.compile(r" \([^()]*\)")


def terminal_summary(report: Report, *, line_length_max: int | None = None) -> RenderableType:
    """Return the summary for a terminal, about ten lines, what got worse, and answers to questions.

    Lines without a command are cut at `line_length_max`; without it none is.
    """
    lines = [Text(visible(what_in_words(report)), style="bold"), _rows_line(report), _states_line(report)]
    # Where partitions have no leader, who brings one back takes the place of how even the brokers are.
    urgent = _leaderless_lines(report)
    even = [line for quantity in QUANTITIES if (line := _distance_line(report, quantity)) is not None]
    lines += urgent or even
    several = len(report.placers) > 1
    # Of a fleet the third of the worst gives way to the line about what to do next, where bytes are known.
    is_real = report.run.kind == "dumps"
    unhealthy = [row for row in report.current_rows if not row.healthy]
    worst = unhealthy[: _WORST_SHOWN if is_real else min(_WORST_SHOWN, _LINES_MAX - len(lines) - 1)]
    lines.append(Text("First to look at:" if worst else no_findings(report), style="bold"))
    lines += [_worst_line(row, several) for row in worst]
    if is_real and len(unhealthy) > len(worst):
        lines.append(Text(f"  and {len(unhealthy) - len(worst):,} more; report.html ranks all"))
    lines += _limit_lines(report, worst)
    following = _next_lines(report, worst)
    lines += following
    lines += [Text(visible(line)) for line in since_lines(courses(report), _WORST_SHOWN)]
    earlier = [row for row in report.earlier_rows if not row.healthy][: max(0, _LINES_MAX - 1 - len(lines))]
    if earlier:
        lines.append(Text("Earlier moments, the worst first:", style="bold"))
        lines += [_worst_line(row, several) for row in earlier[:_WORST_SHOWN]]
    if report.run.grouping is not None:
        how = _NAMED.sub("", report.run.grouping)  # What got worse names the clusters and the moments.
        lines.append(Text(visible(f"Moments: {how}.")))
    lines += [Text(visible(line)) for line in files_lines(report)]
    known = _known_lines(report)
    lines[3:3] = known
    for line in lines:
        if line_length_max is not None and line not in (*known, *urgent, *following):
            line.truncate(line_length_max, overflow="ellipsis")
    return Group(*lines, *(Text(line) for line in answer_lines(report.answers)))


def _known_lines(report: Report) -> list[Text]:
    """Return what limits the answers: dumps that are not whole, brokers that are not alive."""
    found = [(row, line) for row in report.current_rows if row.facts.known for line in _known_of(row).lines()]
    several = len(report.current_rows) > 1
    lines = [f"{f'{row.facts.cluster[:_NAME_LENGTH_MAX]}: ' if several else ''}{line}" for row, line in found]
    more = [f"and {plural(len(lines) - _KNOWN_SHOWN, 'more line')} of this kind"] if len(lines) > _KNOWN_SHOWN else []
    return [Text(visible(line)) for line in (*lines[:_KNOWN_SHOWN], *more)]


def _known_of(row: ClusterRow) -> Known:
    """Return what is known of a cluster of a dump."""
    return Known.of_text(row.facts.known)


def _limit_lines(report: Report, worst: Sequence[ClusterRow]) -> list[Text]:
    """Return why brokers hold far more than others at best, of the clusters that are shown, or of the first of all."""
    places = [row.place for row in worst or report.current_rows[:1]]
    notes = (note for each in report.details if each.row.place in places for note in rack_limit_notes(each))
    return [Text(f"  {visible(note)}") for note in notes][:_WORST_SHOWN]


def _next_lines(report: Report, worst: Sequence[ClusterRow]) -> list[Text]:
    """Return the first step of each cluster that is shown, and its command, which is never cut."""
    details = {detail.row.place: detail for detail in report.details}
    found = [details[row.place] for row in worst if row.place in details and not row.facts.leaderless_count]
    steps = [(detail.row.place, _steps(report, detail)) for detail in found]
    return [Text(f"Next, for {place}., {visible(each[0])}") for place, each in steps if each]


def _steps(report: Report, detail: ClusterDetail) -> list[str]:
    """Return each step of a cluster with its command; the first of a report that names no inputs has none."""
    commands = commands_of(report, detail.row.facts)
    steps = next_steps(detail, report.run.tolerance, commands)
    return [step.words if step.command is None else f"{step.words}: {step.command}" for step in steps]


def _leaderless_lines(report: Report) -> list[Text]:
    """Return who must return to partitions without a leader, of the first clusters that have some; in full of one."""
    details = [detail for detail in report.details if detail.row.facts.leaderless_count and detail.advice.recovery]
    current = {row.place for row in report.current_rows}
    lines: list[Text] = []
    for detail in [each for each in details if each.row.place in current][:_WORST_SHOWN]:
        first, *others = _steps(report, detail)
        lines.append(Text(visible(f"First, for {detail.row.place}., {first}"), style="bold red"))
        lines += [Text(visible(f"  {other}")) for other in others if len(lines) < _STEPS_SHOWN]
    return lines


def _rows_line(report: Report) -> Text:
    totals = ", ".join(_total(report, thing) for thing in ("broker", "partition", "replica"))
    line = Text(f"{totals}; {plural(report.rows_in, 'row')} in = {count(report.rows_analysed)} analysed + ")
    line.append(f"{count(report.rows_rejected)} rejected", style="bold red" if report.rows_rejected else "")
    over = report.lines_passed_over
    return line.append(f"; {plural(over, 'line')} of other text passed over" if over else "")


def _total(report: Report, thing: str) -> str:
    total = total_of(report, f"{thing}_count")
    return f"{thing}s not known" if total is None and report.current_rows else plural(total or 0, thing)


def _states_line(report: Report) -> Text:
    wrong, unknown, alarm = [], 0, False
    for state in STATES:
        total = state_count(report.current_rows, state, report.rest)
        unknown += total.found is None
        if total.found:
            alarm = alarm or state.alarm
            # A dump that lists some partitions only, as a filter prints them, has no share of all.
            share = f" ({share_of(total.found, total.partition_count)})" if total.partition_count else ""
            wrong.append(f"{count(total.found)} {state.title}{share}")
    missing = f"{plural(unknown, 'state')} {'not simulated' if report.run.kind == 'fleet' else 'not in the dump'}"
    if unknown == len(STATES):
        return Text(f"Now: {missing}")
    line = Text("Now: ").append(
        visible(", ".join(wrong)) if wrong else _all_is_well(report), style="red" if alarm else ""
    )
    return line.append(f"; {missing}" if unknown else "")


def _all_is_well(report: Report) -> str:
    return "no partition in a bad state" if _known_lines(report) else "nothing wrong"


def _distance_line(report: Report, quantity: str) -> Text | None:
    by_placer: dict[str, list[int]] = {}
    for row in report.current_rows:
        spread = row.over_brokers.of(quantity)
        share = None if spread is None else ppm(spread.moves_share)
        if share is not None:
            by_placer.setdefault(row.facts.placer, []).append(share)
    for placer in sorted(report.rest.placers):
        if (more := report.rest.of_placer(placer).parts_per_million(quantity)).size:
            by_placer.setdefault(placer, []).extend(more.tolist())
    if not by_placer:
        return None
    parts = [
        f"{f'{placer} ' if len(by_placer) > 1 else ''}median {percent(quantile(sorted(shares), 50))}, "
        f"worst {percent(max(shares))}"
        for placer, shares in sorted(by_placer.items())
    ]
    return Text(visible(f"{quantity.capitalize()} to move (best 0 %): {'; '.join(parts)}"))


def _worst_line(row: ClusterRow, several: bool) -> Text:
    placer = f" ({visible(row.facts.placer)})" if several else ""
    return Text(f"  {row.place}. ").append(visible(f"{row.facts.cluster[:_NAME_LENGTH_MAX]}{placer}: {row.worst}"))


def summary_json(report: Report) -> str:
    """Return the summary for programs: one JSON object, keys in a fixed order, null where the input does not say."""
    summary: dict[str, Any] = {
        "kind": report.run.kind,
        "title": report.run.title,
        "command": report.run.command,
        "version": report.run.version,
        "seed": report.run.seed,
        "tolerance": report.run.tolerance,
        "rows_in": report.rows_in,
        "rows_analysed": report.rows_analysed,
        "rows_rejected": report.rows_rejected,
        "lines_passed_over": report.lines_passed_over,
        "input_count": report.inputs.count,
        "unusable_input_count": report.unusable.count,
        "skipped_count": None if report.run.skipped is None else len(report.run.skipped),
        "skipped": None if report.run.skipped is None else list(report.run.skipped[:LISTED_MAX]),
        "unusable_inputs": [{"source": row.source, "fault": row.fault} for row in report.unusable.rows],
        "rejects": [attrs.asdict(row) for row in report.rejects.rows],
        "cluster_count": report.cluster_count,
        "dump_or_placement_count": report.row_count,
        "placers": list(report.placers),
    }
    for field in ("broker_count", "topic_count", "partition_count", "replica_count", "size_bytes"):
        summary[field] = total_of(report, field)
    summary |= {state.field: state_count(report.current_rows, state, report.rest).found for state in STATES}
    summary["states"] = states_json(report)
    summary["unracked_cluster_count"] = rackless_count(report)
    of_dumps = [row for row in report.current_rows[:LISTED_MAX] if row.facts.known]
    summary["known"] = [_known_of(row).as_json() for row in of_dumps]
    summary["moves_share"] = {quantity: _distances(report, quantity) for quantity in QUANTITIES}
    summary["leaderless"] = [
        {
            "cluster": detail.row.facts.cluster,
            "leaderless_count": detail.row.facts.leaderless_count,
            "must_return_broker_ids": must_return(detail),
            "steps": [attrs.asdict(step) for step in recovery_steps(detail, commands_of(report, detail.row.facts))],
        }
        for detail in report.details[:LISTED_MAX]
        if detail.row.facts.leaderless_count and detail.advice.recovery
    ]
    summary["first_to_look_at"] = [
        {"cluster": row.facts.cluster, "placer": row.facts.placer, "worst": row.worst}
        for row in report.current_rows[:10]
        if not row.healthy
    ]
    summary["what_to_do_next"] = [
        one for detail in report.details[:LISTED_MAX] if (one := advice_json(detail, report)) is not None
    ]
    summary["grouping"] = report.run.grouping
    summary["since_last_time"] = since_json(report)
    summary["moments"] = moments_json(report)
    summary["out_of_sync"] = [one for row in report.current_rows if (one := _out_of_sync(report, row))][:LISTED_MAX]
    summary["cordoned"] = [one for detail in report.details[:LISTED_MAX] if (one := _cordoned(detail)) is not None]
    now = {row.place for row in report.current_rows}
    summary["clusters"] = [
        cluster_json(detail, is_now=detail.row.place in now) for detail in report.details[:LISTED_MAX]
    ]
    if report.answers:
        summary["answers"] = answers_json(report.answers)
    return json.dumps(summary, indent=2, ensure_ascii=True, allow_nan=False)


def _cordoned(detail: ClusterDetail) -> dict[str, Any] | None:
    """Return which brokers of a cluster shown in full get no new replicas; None if none is cordoned."""
    found = sorted(broker.broker_id for broker in detail.brokers if broker.cordoned)
    facts = detail.row.facts
    return {"cluster": facts.cluster, "placer": facts.placer, "brokers": found} if found else None


def _out_of_sync(report: Report, row: ClusterRow) -> dict[str, Any] | None:
    """Return which brokers are missing from the ISRs of a cluster, most first; None if none is."""
    if not row.facts.under_replicated_count or row.facts.out_of_sync_brokers is None:
        return None
    missing = [broker for detail in report.details if detail.row.place == row.place for broker in missing_most(detail)]
    return {
        "cluster": row.facts.cluster,
        "placer": row.facts.placer,
        "under_replicated_count": row.facts.under_replicated_count,
        "brokers": list(row.facts.out_of_sync_brokers),
        "explained_count": row.facts.out_of_sync_explained_count,
        "missing": [
            {"broker_id": one.broker_id, "rack": one.rack, "missing_from_isr_count": one.missing_from_isr_count}
            for one in missing[:LISTED_MAX]
        ],
    }


def _distances(report: Report, quantity: str) -> list[dict[str, Any]] | None:
    groups: dict[str, list[float]] = {}
    for row in report.current_rows:
        spread = row.over_brokers.of(quantity)
        if spread is not None and spread.moves_share is not None:
            groups.setdefault(row.facts.placer, []).append(spread.moves_share)
    for placer in sorted(report.rest.placers):
        if (more := report.rest.of_placer(placer).shares(quantity)).size:
            groups.setdefault(placer, []).extend(more.tolist())
    if not groups:
        return None
    return [
        {
            "placer": placer,
            "cluster_count": len(shares),
            "at_optimum_count": sum(1 for share in shares if share == 0),
            "median": sorted(shares)[(len(shares) - 1) // 2],
            "worst": max(shares),
        }
        for placer, shares in sorted(groups.items())
    ]
