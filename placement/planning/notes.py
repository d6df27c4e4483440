"""Say what the reader of a plan must know before it runs, in sentences.

Example: "2 partitions would wait for a kept out-of-sync replica before 4.3 (KAFKA-19975): orders-1, orders-4".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from broker.cluster import PAD, ClusterView, distinct_ids
from broker.min_isr import min_isr_by_topic
from broker.row_flags import any_in_row, count_in_row
from broker.units import format_size
from broker.wording import brokers_listed, counted, first_of
from placement.balance.rack_limits import rack_limits
from placement.planning.completion import (
    OTHERS,
    Completion,
    completion,
    down_targets,
    elected_besides,
    named_down,
    rollback_refused,
    unblocked_by_newer_release,
)
from placement.planning.findings import drained_if_gone, named
from placement.planning.goal import SHOWN_MAX, Goal, copy_sizes, excluded_rows
from placement.planning.plan import Plan
from placement.planning.reassignment import Reassignment

_GAP_MAX: Final = 0.01


def notes_of(plan: Plan, done: Completion | None = None) -> tuple[str, ...]:
    """Return the notes on a plan; `done` is the completion of its reassignment if it is known already."""
    return tuple(_notes(plan, completion(plan.reassignment) if done is None else done))


def least_of(goal: Goal) -> str:
    """Return which plans move no less than the bound, such as "plans after which broker 5 is empty and ..."."""
    if goal.only_leaders:
        found = "plans that move no replica, and whose leaders end as even as that allows"
    elif goal.is_narrow:
        verb = "is" if len(goal.remove) == 1 else "are"
        asked = [f"{brokers_listed(goal.remove)} {verb} empty"] if goal.remove else []
        asked += [] if goal.factor is None else [f"partitions have {counted(goal.factor, 'replica')}"]
        found = f"plans after which {' and '.join(asked)}, and in which no replica moves that can stay"
    elif goal.by_bytes:
        found = f"plans that end within {100 * (goal.tolerance or 0):g} % of the bytes that brokers can have"
    elif goal.is_even:
        found = "plans that end on as many racks, and with brokers as even, as can be"
    else:
        found = "plans that restore racks and leave brokers no more uneven than they are"
    return f"{found}; excluded topics stay" if goal.exclude_topics else found


def _notes(plan: Plan, done: Completion) -> Iterator[str]:
    moved = plan.reassignment
    bare = sum(one.rack is None for one in plan.view.brokers)
    if plan.view.racks and bare:
        yield f"{bare} of {counted(len(plan.view.brokers), 'broker')} without a known rack, each a rack of its own"
    cordoned = _cordoned(plan)
    if cordoned:
        yield f"{cordoned} cordoned: partitions there stay as they are, as Kafka 4.4 refuses others (KAFKA-20832)"
    yield from _down(plan)
    yield from _held_already(plan)
    idle = _idle(plan)
    if idle:
        shown = first_of(idle, SHOWN_MAX)
        yield f"{counted(len(idle), 'broker')} that the dump shows nowhere would receive replicas: {shown}"
    drifted = elected_besides(moved, plan.goal).count
    if drifted:
        what = "other partition" if moved.count else "partition"
        step = "is a step besides" if moved.count else "is the step"
        yield (
            f"{counted(drifted, what)} not led by the preferred leader, as the plan counts; a preferred leader "
            f"election {step}: kafka-leader-election.sh --election-type preferred --path-to-json-file {OTHERS} "
            "(--out writes it)"
        )
    if not plan.goal.only_leaders and plan.goal.is_even and not plan.goal.is_narrow:
        yield from rack_limits(
            plan.view, plan.target, plan.view.alive & ~np.isin(plan.view.broker_ids, plan.goal.remove)
        )
    if not moved.count:
        yield "no replica has to move" if drifted else "nothing has to change"
        return
    down = down_targets(plan.reassignment)
    if down:
        yield (
            f"the plan names {named_down(down)}: kafka-reassign-partitions --execute knows live brokers only and "
            "refuses the whole file until they are back"
        )
    if not down and (refused := rollback_refused(moved)):
        yield refused
    yield from _waiting(moved, done)
    single = int(np.count_nonzero(any_in_row(moved.added) & (count_in_row(moved.current >= 0) == 1)))
    if single:
        yield f"{counted(single, 'moving partition')} with a single replica: its broker must stay up"
    tight = _tight(plan)
    if tight:
        yield (
            f"{counted(tight, 'partition')} would have as many replicas as min.insync.replicas, or fewer: then one "
            "broker out stops producers with acks=all"
        )
    if (moved.copy_bytes[any_in_row(moved.added)] < 0).any():
        yield "bytes are unknown: --sizes gives them"
    yield from _unproven(plan)
    for what, proof in (("replicas", plan.certificate.replicas), ("leaders", plan.certificate.leaders)):
        if plan.goal.is_narrow or (what == "replicas" and plan.goal.by_bytes):
            continue
        if proof is not None and proof.totals.size > 1 and proof.is_even:
            low, high = int(proof.even_low[proof.block >= 0].min()), int(proof.even_high.max())
            why = "racks" if what == "replicas" else "the places of replicas"
            yield f"{what} end between {low} and {high} a broker: {why} allow nothing more even"


def _waiting(moved: Reassignment, done: Completion) -> Iterator[str]:
    """Yield which partitions do not complete as the cluster stands, or would not under an older release."""
    for rows, what in (
        (done.is_blocked, "cannot complete before a replica is back in sync or a broker is unfenced"),
        (unblocked_by_newer_release(moved), "would wait for a kept out-of-sync replica before 4.3 (KAFKA-19975)"),
    ):
        places = np.flatnonzero(rows)
        if places.size:
            yield f"{counted(int(places.size), 'partition')} {what}: {named(moved.view, moved.rows[places])}"


def _unproven(plan: Plan) -> Iterator[str]:
    """Yield why more than a hundredth of the copied bytes is above the bound."""
    proof, gap = plan.certificate.replicas, plan.tally.moved_bytes_gap
    if proof is None or gap is None or gap <= _GAP_MAX:
        return
    above = f"up to {100 * gap:.1f} % of the copied bytes may be more than needed: "
    if plan.goal.per_topic:
        yield f"{above}the bound is that of bytes alone, and replicas of topics become even too"
        return
    width = int((proof.high - proof.low).max())
    large = int(np.count_nonzero((copy_sizes(plan.view) > width) & ~excluded_rows(plan.view, plan.goal)))
    if large:
        yield (
            f"{above}{counted(large, 'partition')} {'is' if large == 1 else 'are'} larger than the bounds of a broker "
            f"are wide ({format_size(width)}), and the bound takes partitions for divisible"
        )
    else:
        yield f"{above}the bound takes partitions for divisible"


def _down(plan: Plan) -> Iterator[str]:
    """Yield which brokers look down, and that they receive nothing."""
    down = {number: how for number, how in plan.view.seen_down.items() if number not in plan.goal.remove}
    if down:
        stay = np.isin(np.append(plan.view.broker_ids, PAD)[plan.target], list(down)).any()
        yield (
            f"{named_down(down)} {'looks' if len(down) == 1 else 'look'} down: no replica and no leader goes "
            f"there{', and what is there stays' if stay else ''}; {drained_if_gone(plan.view, list(down))}"
        )


def _held_already(plan: Plan) -> Iterator[str]:
    """Yield that brokers are added which hold replicas: perhaps other ones were meant."""
    if not plan.goal.add:
        return
    loads = _loads_of(plan.view)
    known = [(number, int(loads[number])) for number in sorted({number for number, _ in plan.goal.add})]
    held = [(number, load) for number, load in known if load]
    if held:
        shown = first_of((f"{number} ({counted(load, 'replica')})" for number, load in held), SHOWN_MAX)
        noun, verb = ("broker", "is") if len(held) == 1 else ("brokers", "are")
        yield f"added {noun} that {verb} not new, but hold{'s' * (len(held) == 1)} replicas already: {shown}"


def _loads_of(view: ClusterView) -> Counter[int]:
    """Return how many replicas each broker holds; 0 for one that holds none."""
    held, counts = np.unique(view.partitions.replicas, return_counts=True)
    return Counter({number: count for number, count in zip(held.tolist(), counts.tolist(), strict=True) if number >= 0})


def _idle(plan: Plan) -> list[int]:
    """Return the brokers that hold nothing, receive something and are not added by the goal."""
    added = {number for number, _ in plan.goal.add}
    held = distinct_ids(plan.view.partitions.replicas).tolist()
    received = distinct_ids(plan.reassignment.replicas).tolist()
    return sorted(set(received) - set(held) - added)


def _cordoned(plan: Plan) -> str:
    """Return which brokers are cordoned, in words; nothing if none is."""
    found = plan.view.broker_ids[plan.view.alive & plan.view.flag("cordoned")].tolist()
    return f"{brokers_listed(found)} {'are' if len(found) > 1 else 'is'}" if found else ""


def _tight(plan: Plan) -> int:
    """Return how many partitions come to have no more replicas than min.insync.replicas, and had more before."""
    if plan.goal.factor is None:
        return 0
    moved, table = plan.reassignment, plan.view.partitions
    asked = min_isr_by_topic(plan.view.topics)[table.topic_index[moved.rows]]
    after = count_in_row(moved.replicas >= 0)
    return int(np.count_nonzero((asked > 1) & (after <= asked) & (after != count_in_row(moved.current >= 0))))
