"""Decide what to do next with one cluster: least plans and what they gain, the worst outages, restarts, commands.

Nothing but a gain has the accent. A plan that changes nothing, or that a rule forbids, has no command. What a report
cannot say has its reason in its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import attrs

from placement.balance.rack_limits import is_rack_limit
from spark_analysis.report.commands import Commands, commands_of
from spark_analysis.report.figures import count, plural, quantity
from spark_analysis.report.model import QUANTITIES, ClusterDetail, Report, Spreads
from spark_analysis.report.recovery import NextStep, preferred_step, recovery_json, recovery_steps
from spark_analysis.report.rows import LeastPlan, RestartBatches, WorstOutage, row_json
from spark_analysis.report.states import is_uneven

__all__ = (
    "GOALS",
    "command_items",
    "gain_heads",
    "gain_of",
    "gains",
    "gains_known",
    "next_steps",
    "outage_counts",
    "plan_notes",
    "restarts_in_words",
)

GOALS: Final = {
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


def gains(plan: LeastPlan, spreads: Spreads, tolerance: float) -> tuple[str, ...]:
    """Return what a plan brings down that is worth a word: replicas, leaders, bytes or racks."""
    found = [name for name in QUANTITIES if _falls(plan, name) and is_uneven(spreads.of(name), tolerance)]
    return ("racks",) * _falls(plan, "racks") + tuple(found)


def first_plan(detail: ClusterDetail, tolerance: float) -> LeastPlan | None:
    """Return the plan to look at first; None where no plan gains anything worth a word, or brokers come first."""
    if brokers_first(detail):
        return None
    by_goal = {plan.goal: plan for plan in detail.advice.plans if plan.refused is None}
    wanted = {goal: gains(plan, detail.row.over_brokers, tolerance) for goal, plan in by_goal.items()}
    for goal, quantities in _FIRST:
        if any(each in wanted.get(goal, ()) for each in quantities):
            return by_goal[goal]
    return by_goal["balance"] if wanted.get("balance") else None


def brokers_first(detail: ClusterDetail) -> tuple[NextStep, ...]:
    """Return what brings brokers back before anything moves: partitions lack leaders, or brokers look dead."""
    steps, facts, restarts = recovery_steps(detail, None), detail.row.facts, detail.advice.restarts
    if steps:
        return steps
    if facts.leaderless_count:
        words = f"{plural(facts.leaderless_count, 'partition')} without a leader: bring their brokers back first"
        return (NextStep("return", words),)
    if restarts is not None and restarts.refused is not None and facts.under_replicated_count:
        return (NextStep("wait", str(restarts.refused)),)
    return ()


def next_steps(detail: ClusterDetail, tolerance: float, commands: Commands | None) -> tuple[NextStep, ...]:
    """Return what to do with a cluster, the first thing first: leaders, dead brokers, elections, the first plan."""
    first = recovery_steps(detail, commands) or brokers_first(detail)
    elect, evens = preferred_step(detail, commands, tolerance)
    plan = first_plan(detail, tolerance)
    steps = list(first)
    if elect is not None and (evens or (plan is None and not steps)):
        steps.append(elect)
    if plan is not None:
        line = None if commands is None else commands.plan(plan)
        steps.append(NextStep("plan", plan_in_words(plan), line))
    return tuple(steps)


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


def rack_limit_notes(detail: ClusterDetail) -> tuple[str, ...]:
    """Return which brokers hold far more than the mean because of their rack, and what one more there changes."""
    notes = (note for plan in detail.advice.plans if plan.goal == "balance" for note in plan.notes)
    return tuple(filter(is_rack_limit, notes))


def advice_json(detail: ClusterDetail, report: Report) -> dict[str, Any] | None:
    """Return what to do next with a cluster, for programs; None where there is nothing to say."""
    advice, commands = detail.advice, commands_of(report, detail.row.facts)
    if not (advice.plans or advice.outages or advice.restarts or advice.recovery):
        return None
    first = first_plan(detail, report.run.tolerance)
    plans = [
        row_json(plan) | {"command": _of(commands, "plan", plan), "check_command": _of(commands, "check", plan)}
        for plan in advice.plans
    ]
    return {
        "cluster": detail.row.facts.cluster,
        "placer": detail.row.facts.placer,
        "steps": [attrs.asdict(step) for step in next_steps(detail, report.run.tolerance, commands)],
        "recovery": recovery_json(detail),
        "rack_limits": list(rack_limit_notes(detail)),
        "first": None if first is None else first.goal,
        "plans": plans,
        "outages": [row_json(each) for each in advice.outages],
        "outage_command": None if commands is None else commands.outage(),
        "restarts": None if advice.restarts is None else row_json(advice.restarts),
        "restart_command": None if commands is None else commands.roll(),
    }


def _of(commands: Commands | None, kind: str, plan: LeastPlan) -> str | None:
    """Return the command of a plan that changes something or was left to the command; None for every other."""
    if commands is None or (not plan.changed_partition_count and not _is_left(plan)):
        return None
    return commands.plan(plan) if kind == "plan" else commands.check(plan)


def _is_left(plan: LeastPlan) -> bool:
    return plan.refused is not None and plan.refused.endswith("left to the command")


def _falls(plan: LeastPlan, name: str) -> bool:
    before, after = gain_of(plan, name)
    return before is not None and after is not None and after < before


def gains_known(plans: Sequence[LeastPlan]) -> list[str]:
    """Return racks and the quantities that some plan has a measure of."""
    return [name for name in ("racks", *QUANTITIES) if any(gain_of(plan, name)[0] is not None for plan in plans)]


def gain_heads(names: Iterable[str]) -> str:
    """Return the heads of the columns of gains."""
    return "".join("|#on fewer racks" if name == "racks" else f"|#{name} to move" for name in names)


def gain_of(plan: LeastPlan, name: str) -> tuple[int | None, int | None]:
    """Return a measure before a plan and after it."""
    field = _FIELDS.get(name, _RACKS)
    return getattr(plan, f"{field}_before"), getattr(plan, f"{field}_after")


def plan_notes(plans: Sequence[LeastPlan]) -> Iterator[str]:
    """Yield what is to be known of the plans: one note of all of them, and one of each."""
    about: dict[str, list[str]] = {}
    for plan in plans:
        of_plan = [f"there is no plan: {plan.refused}"] if plan.refused is not None else []
        if plan.excluded_topics and plan.refused is None:
            of_plan.append(f"without {', '.join(plan.excluded_topics)}, whose observers a plan would lose")
        if plan.from_target and plan.refused is None:
            of_plan.append("made from where reassignments in progress will end")
        for each in (*of_plan, *plan.notes):
            about.setdefault(each, []).append(GOALS[plan.goal])
    together: dict[str, list[str]] = {}
    for sentence, goals in about.items():
        whom = "All plans" if len(goals) == len(plans) > 1 else ", ".join(goals).capitalize()
        together.setdefault(whom, []).append(sentence)
    for whom, sentences in together.items():
        yield f"{whom}: {'; '.join(sentences)}."


def outage_counts(outage: WorstOutage) -> list[tuple[int | None, int | None]]:
    """Return the partitions in each state after an outage, and now."""
    return [(getattr(outage, name), getattr(outage, f"{name}_now")) for name in _OUTAGE_COUNTS]


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


def command_items(detail: ClusterDetail, tolerance: float, commands: Commands) -> list[tuple[str, list[str]]]:
    """Return what commands do, and the commands that can be shown."""
    found = (
        (what, [line for line in lines if line is not None]) for what, lines in _lines(detail, tolerance, commands)
    )
    return [(what, lines) for what, lines in found if lines]


def _lines(detail: ClusterDetail, tolerance: float, commands: Commands) -> Iterator[tuple[str, tuple[str | None, ...]]]:
    """Yield what commands do, and the commands: those of plans, the first plan first, of outages and of restarts."""
    first = first_plan(detail, tolerance)
    plans = [plan for plan in detail.advice.plans if _of(commands, "plan", plan) is not None]
    for plan in sorted(plans, key=lambda plan: plan is not first):
        size = "left to the command" if plan.refused is not None else plan_in_words(plan)
        what = f"Plan, {GOALS[plan.goal]}: {size}. Then check it, and that the cluster is still as it was:"
        yield what, (commands.plan(plan), commands.check(plan))
    yield "See what every outage does:", (commands.outage(),)
    yield "Schedule the restarts:", (commands.roll(),)
