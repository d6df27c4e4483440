"""Show what to do next with one cluster: least plans and what they gain, the worst outages, restarts, the commands.

What it decides: which plan is named first. Broken racks come first, then what needs replicas to move, then leaders. A
figure has the accent where a plan brings it down and it was over the tolerance before; for racks always.

Constraints: nothing but a gain has the accent. A plan that changes nothing, or that a rule forbids, has no command.
What a report cannot say has its reason in its place.

Example: "racks: 3 replicas move (no plan moves fewer), 2 leaders change; on fewer racks 3 -> 0".

Left out: simulated fleets, which nobody can mend; plans that add or drain brokers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from broker.drawing.element import Content, Markup, tag
from spark_analysis.report.commands import Commands, commands_of
from spark_analysis.report.figures import UNKNOWN, count, decimal, percent, plural, ppm, quantity
from spark_analysis.report.model import QUANTITIES, ClusterDetail, Report, Spreads
from spark_analysis.report.parts import Cell, Header, note, table
from spark_analysis.report.rows import LeastPlan, RestartBatches, WorstOutage
from spark_analysis.report.states import is_uneven
from spark_analysis.tables.limits import BYTES_TOLERANCE_PERCENT, OUTAGE_BROKERS_MAX

_GOALS: Final = {
    "balance": "balance",
    "bytes": "even bytes",
    "leaders": "leaders only",
    "racks": "racks only",
}
_FIELDS: Final = {"replicas": "replica_moves", "leaders": "leader_moves", "bytes": "byte_moves"}
_FIRST: Final = (
    ("racks", ("racks",)),
    ("balance", ("replicas",)),
    ("bytes", ("bytes",)),
    ("balance", ("bytes",)),
    ("leaders", ("leaders",)),
)
"""The plan to look at first: the goal, and what it must gain."""
_RACKS: Final = "fewer_racks_count"
_OUTAGE_COUNTS: Final = ("leaderless_count", "under_min_isr_count", "no_replica_count", "at_risk_count")
_NOTES: Final = (
    "Gains are measures before → after. A plan keeps the rack rule or mends it, so where partitions are on fewer racks "
    "than possible, or a measure is marked ≥, it may move more than the measure says. The plan leaders only "
    "reorders replicas: leaders that have to move afterwards need replicas to move. The plan even bytes brings every "
    f"broker within {BYTES_TOLERANCE_PERCENT} % of the bytes that racks let it reach, whatever the number of its "
    "replicas."
)
_FROM: Final = "The commands are run in the folder in which the report was made."
_STDIN: Final = "The dump came on standard input; the commands read it there again."


def advice_part(detail: ClusterDetail, report: Report) -> Markup | None:
    """Return the part of a cluster that says what to do next; None for a simulated cluster and for the past."""
    if report.run.kind != "dumps" or detail.row not in report.current_rows:
        return None
    advice = detail.advice
    heading = tag("h4", "What to do next")
    if not (advice.plans or advice.outages or advice.restarts):
        return tag("div", heading, note("Nothing can be planned: the dump does not list every partition."))
    return tag(
        "div",
        heading,
        _plans(detail, report.run.tolerance),
        _outages(advice.outages, detail.row.facts.broker_count),
        _restarts(advice.restarts),
        _commands(detail, report),
        class_="next",
    )


def gains(plan: LeastPlan, spreads: Spreads, tolerance: float) -> tuple[str, ...]:
    """Return what a plan brings down that is worth a word: replicas, leaders, bytes or racks."""
    found = [name for name in QUANTITIES if _falls(plan, _FIELDS[name]) and is_uneven(spreads.of(name), tolerance)]
    return ("racks",) * _falls(plan, _RACKS) + tuple(found)


def first_plan(detail: ClusterDetail, tolerance: float) -> LeastPlan | None:
    """Return the plan to look at first; None where no plan gains anything worth a word, or brokers come first."""
    if brokers_first(detail) is not None:
        return None
    by_goal = {plan.goal: plan for plan in detail.advice.plans if plan.refused is None}
    wanted = {goal: gains(plan, detail.row.over_brokers, tolerance) for goal, plan in by_goal.items()}
    for goal, quantities in _FIRST:
        if any(each in wanted.get(goal, ()) for each in quantities):
            return by_goal[goal]
    return by_goal["balance"] if wanted.get("balance") else None


def brokers_first(detail: ClusterDetail) -> str | None:
    """Return why brokers have to come back before anything moves: partitions without a leader, or restarts refused."""
    facts, restarts = detail.row.facts, detail.advice.restarts
    if facts.leaderless_count:
        return f"{plural(facts.leaderless_count, 'partition')} without a leader: bring their brokers back first"
    if restarts is not None and restarts.refused is not None and facts.under_replicated_count:
        return restarts.refused
    return None


def plan_in_words(plan: LeastPlan) -> str:
    """Return the size of a plan, such as "3 replicas move (no plan moves fewer), 2 leaders change"."""
    moved, least = plan.moved_count or 0, plan.moved_count_min or 0
    if plan.moved_bytes_min is not None:
        leaders = plan.leader_change_count or 0
        return (
            f"{quantity(plan.moved_bytes, 'bytes')} in {plural(moved, 'replica')} move (at least "
            f"{quantity(plan.moved_bytes_min, 'bytes')} must), {plural(leaders, 'leader')} "
            f"change{'s' if leaders == 1 else ''}"
        )
    proof = f"at least {count(least)} must" if moved > least else "no plan moves fewer"
    replicas = f"{plural(moved, 'replica')} move{'s' if moved == 1 else ''} ({proof})" if moved else "no replica moves"
    leaders = plan.leader_change_count or 0
    return f"{replicas}, {plural(leaders, 'leader')} change{'s' if leaders == 1 else ''}"


def advice_json(detail: ClusterDetail, report: Report) -> dict[str, Any] | None:
    """Return what to do next with a cluster, for programs; None where there is nothing to say."""
    advice, commands = detail.advice, commands_of(report, detail.row.facts)
    if not (advice.plans or advice.outages or advice.restarts):
        return None
    first = first_plan(detail, report.run.tolerance)
    plans = [
        _plain(plan) | {"command": _of(commands, "plan", plan), "check_command": _of(commands, "check", plan)}
        for plan in advice.plans
    ]
    return {
        "cluster": detail.row.facts.cluster,
        "placer": detail.row.facts.placer,
        "first": None if first is None else first.goal,
        "plans": plans,
        "outages": [_plain(each) for each in advice.outages],
        "outage_command": None if commands is None else commands.outage(),
        "restarts": None if advice.restarts is None else _plain(advice.restarts),
        "restart_command": None if commands is None else commands.roll(),
    }


def _plain(row: LeastPlan | WorstOutage | RestartBatches) -> dict[str, Any]:
    found = attrs.asdict(row)
    return {name: value for name, value in found.items() if name not in ("cluster_id", "placer")}


def _of(commands: Commands | None, kind: str, plan: LeastPlan) -> str | None:
    """Return the command of a plan that changes something or was left to the command; None for every other."""
    if commands is None or (not plan.changed_partition_count and not _is_left(plan)):
        return None
    return commands.plan(plan) if kind == "plan" else commands.check(plan)


def _is_left(plan: LeastPlan) -> bool:
    return plan.refused is not None and plan.refused.endswith("left to the command")


def _falls(plan: LeastPlan, field: str) -> bool:
    before, after = getattr(plan, f"{field}_before"), getattr(plan, f"{field}_after")
    return before is not None and after is not None and after < before


def _plans(detail: ClusterDetail, tolerance: float) -> Markup | None:
    plans = detail.advice.plans
    if not plans:
        return None
    shown = [name for name in ("racks", *QUANTITIES) if any(_before(plan, name) is not None for plan in plans)]
    titles = {"racks": "on fewer racks", **{name: f"{name} to move" for name in QUANTITIES}}
    headers = [
        Header("plan", "name"),
        Header("replicas that move (at least)", "num"),
        Header("bytes that move (at least)", "num"),
        Header("leaders that change (at least)", "num"),
        *(Header(titles[name], "num") for name in shown),
    ]
    rows = [_plan_row(plan, shown, detail.row.over_brokers, tolerance) for plan in plans]
    drawn = table("The least plan for each goal, and what it gains", headers, rows)
    return tag("div", drawn, note(_NOTES), *(note(each) for each in _said(plans)))


def _said(plans: Sequence[LeastPlan]) -> Iterator[str]:
    """Yield what is to be known of the plans, each sentence once, with the plans that it is about."""
    about: dict[str, list[str]] = {}
    for plan in plans:
        of_plan = [f"there is no plan: {plan.refused}"] if plan.refused is not None else []
        if plan.excluded_topics and plan.refused is None:
            of_plan.append(f"without {', '.join(plan.excluded_topics)}, whose observers a plan would lose")
        if plan.from_target and plan.refused is None:
            of_plan.append("made from where reassignments in progress will end")
        for each in (*of_plan, *plan.notes):
            about.setdefault(each, []).append(_GOALS[plan.goal])
    for sentence, goals in about.items():
        yield f"{'All plans' if len(goals) == len(plans) > 1 else ', '.join(goals).capitalize()}: {sentence}."


def _plan_row(plan: LeastPlan, shown: list[str], spreads: Spreads, tolerance: float) -> tuple[Content | Cell, ...]:
    name = _GOALS[plan.goal]
    if plan.refused is not None:
        return (name, UNKNOWN, UNKNOWN, UNKNOWN, *(UNKNOWN for _ in shown))
    worth = gains(plan, spreads, tolerance)
    return (
        name,
        count(plan.moved_count) if plan.moved_bytes_min is not None else _least(plan.moved_count, plan.moved_count_min),
        _least_bytes(plan),
        _least(plan.leader_change_count, plan.leader_change_count_min),
        *(_gain(plan, each, alert=each in worth) for each in shown),
    )


def _least(value: int | None, least: int | None) -> Content:
    return tag("span", count(value), tag("span", f" ({count(least)})", class_="quiet")) if value or least else "0"


def _least_bytes(plan: LeastPlan) -> Content:
    """Return the bytes of a plan, and the bound where one is known that is no replica's."""
    said = quantity(plan.moved_bytes, "bytes")
    if plan.moved_bytes_min is None:
        return said
    return tag("span", said, tag("span", f" ({quantity(plan.moved_bytes_min, 'bytes')})", class_="quiet"))


def _before(plan: LeastPlan, name: str) -> int | None:
    found: int | None = getattr(plan, f"{_FIELDS.get(name, _RACKS)}_before")
    return found


def _gain(plan: LeastPlan, name: str, *, alert: bool) -> Content | Cell:
    before = _before(plan, name)
    after = getattr(plan, f"{_FIELDS.get(name, _RACKS)}_after")
    if before is None:
        return UNKNOWN
    unit = "bytes" if name == "bytes" else name
    if before == after:
        return f"{quantity(before, unit)}, as now" if before else quantity(before, unit)
    return Cell(f"{quantity(before, unit)} → {quantity(after, unit)}", alert=alert)


def _outages(outages: tuple[WorstOutage, ...], broker_count: int) -> Markup | None:
    if not outages and broker_count > OUTAGE_BROKERS_MAX:
        more = f"{count(broker_count)} brokers are more than {count(OUTAGE_BROKERS_MAX)}"
        return note(f"The worst outage is not on the page: {more}. brokerside outage looks for it.")
    if not outages:
        return None
    headers = (
        Header("worst to lose", "name"), Header("leaderless (now)", "num"), Header("under min-ISR (now)", "num"),
        Header("no replica left (now)", "num"), Header("at risk (now)", "num"), Header("bytes at risk", "num"),
        Header("leaders lost", "num"), Header("failover concentration", "num"),
        Header("leads most then, x mean", "num"),
    )  # fmt: skip
    notes = sorted({each for outage in outages for each in outage.notes})
    return tag(
        "div",
        table("The worst outage of one broker and of one rack", headers, [_outage_row(each) for each in outages]),
        note(
            "Partitions after the outage, beside those of now. ",
            "; ".join(notes),
        ),
    )


def _outage_row(outage: WorstOutage) -> tuple[Content | Cell, ...]:
    lost = f"broker {outage.broker_id}" if outage.scope == "broker" else f"rack {outage.rack}"
    counts = [(getattr(outage, name), getattr(outage, f"{name}_now")) for name in _OUTAGE_COUNTS]
    taker = "" if outage.failover_broker_id is None else f" to broker {outage.failover_broker_id}"
    piled = UNKNOWN if outage.failover_share is None else f"{percent(ppm(outage.failover_share))}{taker}"
    return (
        lost,
        *(UNKNOWN if after is None else _least(after, now) for after, now in counts),
        quantity(outage.at_risk_bytes, "bytes"),
        count(outage.lost_leader_count),
        piled,
        decimal(outage.leader_max_over_mean),
    )


def restarts_in_words(restarts: RestartBatches) -> str:
    """Return how few batches restart every live broker, in a sentence."""
    if restarts.batch_count is None:
        return f"Restarts: {restarts.refused}."
    batches, least = restarts.batch_count, restarts.batch_count_min or 0
    word = "1 batch" if batches == 1 else f"{count(batches)} batches"
    proof = "no schedule has fewer" if batches <= least else f"every schedule has at least {count(least)}"
    most = plural(restarts.batch_broker_count_max or 0, "broker")
    said = f"All live brokers restart in {word} of at most {most} ({proof})"
    if restarts.stuck_partition_count:
        stuck = restarts.stuck_partition_count
        verb = "falls" if stuck == 1 else "fall"
        said += f"; {plural(stuck, 'partition')} {verb} under min.insync.replicas whatever the order"
    return f"{said}."


def _restarts(restarts: RestartBatches | None) -> Markup | None:
    if restarts is None:
        return None
    notes = note("; ".join(restarts.notes)) if restarts.notes else None
    return tag("div", tag("p", restarts_in_words(restarts)), notes)


def _commands(detail: ClusterDetail, report: Report) -> Markup | None:
    commands = commands_of(report, detail.row.facts)
    if commands is None:
        return note("How the dump was named on the command line is not known, so no command is shown.")
    items = [
        tag("li", what, *(tag("pre", tag("code", *_by_argument(line))) for line in found))
        for what, lines in _lines(detail, report.run.tolerance, commands)
        if (found := [line for line in lines if line is not None])
    ]
    if not items:
        return note("The dump's name has characters that cannot be shown, so no command is.")
    from_ = note(_FROM, f" {_STDIN}" if commands.reads_stdin else "")
    return tag("div", tag("ol", *items, class_="commands"), from_)


def _lines(detail: ClusterDetail, tolerance: float, commands: Commands) -> Iterator[tuple[str, tuple[str | None, ...]]]:
    """Yield what commands do, and the commands; the first plan first, then those that change anything at all."""
    yield "See what every outage does:", (commands.outage(),)
    first = first_plan(detail, tolerance)
    plans = [plan for plan in detail.advice.plans if _of(commands, "plan", plan) is not None]
    for plan in sorted(plans, key=lambda plan: plan is not first):
        size = "left to the command" if plan.refused is not None else plan_in_words(plan)
        what = f"Plan, {_GOALS[plan.goal]}: {size}. Then check it, and that the cluster is still as it was:"
        yield what, (commands.plan(plan), commands.check(plan))
    yield "Schedule the restarts:", (commands.roll(),)


def _by_argument(line: str) -> Iterator[Content]:
    """Yield a command line in parts between which alone the page breaks it."""
    for place, argument in enumerate(line.split(" ")):
        yield " " if place else ""
        yield tag("span", argument)
