"""Refuse unreachable goals; name the violated rule and a remedy.

Example: "orders-0 needs 7 live brokers, and 6 remain; 1 more, or a smaller factor (--factor 6)".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from broker.cluster import PAD, ClusterView, Int32Array, distinct_ids
from broker.errors import UsageError
from broker.ids import NO_LEADER
from broker.min_isr import effective_min_isr, min_isr_of
from broker.row_flags import any_in_row, count_in_row
from broker.wording import brokers_listed, counted, first_of, listed
from placement.outages.elections import leaderless
from placement.planning.completion import completion
from placement.planning.given import Given, unled
from placement.planning.goal import (
    SHOWN_MAX,
    Goal,
    MissingInputError,
    PlanRefusedError,
    copy_sizes,
    excluded_rows,
)
from placement.planning.reassignment import Reassignment, partition_name, partition_names


def _check_capacity(view: ClusterView, goal: Goal) -> None:
    """Refuse capacities that leave out a broker that holds replicas afterwards."""
    known = {number for number, _ in goal.capacity}
    stay = set(view.broker_ids[view.alive].tolist()) | {number for number, _ in goal.add}
    unknown = sorted(stay - known - set(goal.remove))
    if goal.capacity and unknown:
        raise MissingInputError(
            f"{brokers_listed(unknown)} {'has' if len(unknown) == 1 else 'have'} no known disk bytes, in proportion to "
            "which bytes would become even; state them in --capacity (broker -1 is every other one), or leave it out"
        )


def _check_sizes(view: ClusterView) -> None:
    unknown = copy_sizes(view) < 0
    if unknown.any():
        raise MissingInputError(
            f"a plan by bytes needs sizes, and {counted(int(unknown.sum()), 'partition')} "
            f"{'has' if unknown.sum() == 1 else 'have'} none ({_named(view, unknown)}); give a file that states them "
            "(--sizes)"
        )


def check_view(view: ClusterView, goal: Goal) -> None:
    """Refuse a view that a plan cannot be made for: partitions unknown, on the move, or with observers.

    Raises MissingInputError for what the input lacks, such as sizes, PlanRefusedError for what stands in the way.
    """
    if view.wholeness.refusal is not None:
        raise MissingInputError(f"{view.name}: {view.wholeness.refusal}; a plan needs every partition")
    _check_names(view, goal)
    _check_racks(view, goal)
    table = view.partitions
    chosen = ~excluded_rows(view, goal)
    moving = _any(table.adding, table.count) | _any(table.removing, table.count)
    for rows, what, remedy in (
        (
            moving,
            "in a reassignment that is not complete",
            "wait for it, cancel it, or plan from its target (--from-target)",
        ),
        (
            chosen & _any(table.observers, table.count),
            "with observers, which a plan would lose",
            "exclude their topics",
        ),
        (chosen & ~_any(table.replicas, table.count), "without a replica", "exclude their topics"),
    ):
        if rows.any():
            raise PlanRefusedError(f"{counted(int(rows.sum()), 'partition')} {what} ({_named(view, rows)}); {remedy}")
    if goal.factor is not None:
        _check_min_isr(view, goal.factor, chosen)
    if goal.by_bytes:
        _check_sizes(view)
        _check_capacity(view, goal)


def _check_names(view: ClusterView, goal: Goal) -> None:
    strangers = sorted(set(goal.remove) - {one.id for one in view.brokers})
    if strangers:
        known = first_of((one.id for one in view.brokers), 10)
        raise UsageError(f"{brokers_listed(strangers)} cannot be removed: the cluster's brokers are {known}")
    unknown = sorted(set(goal.exclude_topics) - {topic.name for topic in view.topics})
    if unknown:
        raise UsageError(f"topic {unknown[0]!r} cannot be excluded: {view.name} has no such topic")


def _check_racks(view: ClusterView, goal: Goal) -> None:
    """Refuse a goal that asks for racks where no broker has one."""
    known = bool(view.racks) or any(rack is not None for _, rack in goal.add)
    if known or not (goal.kind == "racks" or goal.strict_racks):
        return
    what = "strict racks" if goal.strict_racks else "goal racks"
    raise MissingInputError(
        f"{what}: none of the {counted(len(view.brokers), 'broker')} of {view.name} has a known rack (--racks FILE)"
    )


def _check_min_isr(view: ClusterView, factor: int, chosen: NDArray[np.bool_]) -> None:
    for place, topic in enumerate(view.topics):
        least = min_isr_of(topic)
        if least is None or effective_min_isr(least, factor) == least:
            continue
        if bool((chosen & (view.partitions.topic_index == place)).any()):
            raise PlanRefusedError(
                f"topic {topic.name} has min.insync.replicas {least}: with {counted(factor, 'replica')} brokers ask "
                f"for no more than {factor} in sync; lower it, choose a factor of {least} or more, or exclude the topic"
            )


def check_given(view: ClusterView, goal: Goal, given: Given) -> None:
    """Refuse to drain what is pinned, to change what cordoned brokers hold, and factors too great for the brokers."""
    _check_pinned(view, goal, given)
    _check_lowered(view, goal, given)
    cordoned = view.broker_ids[given.cordoned].tolist()
    uncordon = f" (uncordon {brokers_listed(cordoned)})" if cordoned else ""
    if not given.live.any():
        raise PlanRefusedError(
            f"none of the {counted(len(view.brokers), 'broker')} is live and stays; add one, or keep one{uncordon}"
        )
    rows = np.flatnonzero(given.fresh & (given.wanted > count_in_row(given.own)))
    if not rows.size:
        return
    count = int(np.count_nonzero(given.live))
    needed = given.wanted + count_in_row(given.stays & np.append(given.live, False)[given.rows])
    row = int(rows[np.argmax(needed[rows])])
    if needed[row] > count:
        down = int(np.count_nonzero(given.stays[row])) + int(given.wanted[row] - needed[row])
        besides = f" besides {down} that {'stays' if down == 1 else 'stay'} on brokers that are down" if down else ""
        raise PlanRefusedError(
            f"{partition_name(view, row)} needs {counted(int(needed[row]), 'live broker')}{besides}, and {count} "
            f"{'remains' if count == 1 else 'remain'}; {int(needed[row]) - count} more{uncordon}, or a smaller factor "
            f"(--factor {count + down})"
        )
    if goal.strict_racks:
        _check_strict(view, given)


def _check_strict(view: ClusterView, given: Given) -> None:
    """Refuse more replicas than there are racks of live brokers."""
    pairs = list(zip(view.brokers, given.live.tolist(), strict=True))
    racks = sorted({one.rack for one, is_live in pairs if is_live and one.rack})
    alone = sum(one.rack is None and is_live for one, is_live in pairs)
    placed = np.where(given.changes, given.wanted + count_in_row(given.stays), 0)
    most = int(placed.max(initial=0))
    if racks and most > len(racks) + alone:
        raise PlanRefusedError(
            f"{partition_name(view, int(np.argmax(placed)))} has {most} replicas for {counted(len(racks), 'rack')} "
            f"({first_of(racks, SHOWN_MAX)}); "
            f"{counted(most - len(racks) - alone, 'more rack')}, or no --strict-racks: then each rack gets at least one"
        )


def _check_pinned(view: ClusterView, goal: Goal, given: Given) -> None:
    """Refuse to drain a broker that holds what may not change, and to change what a cordoned broker holds."""
    left = np.append(given.removed, False)[given.rows] & excluded_rows(view, goal)[:, None]
    if left.any():
        row = int(np.argmax(any_in_row(left)))
        broker = int(view.broker_ids[given.rows[row][left[row]][0]])
        raise PlanRefusedError(
            f"broker {broker} cannot be removed: it holds {partition_name(view, row)} of an excluded topic "
            f"({counted(int(left.sum()), 'such replica')} on removed brokers); do not exclude the topic"
        )
    on_cordoned = np.append(given.cordoned, False)[given.rows]
    must = any_in_row(np.append(given.removed, False)[given.rows])
    if goal.factor is not None:
        must |= count_in_row(given.rows >= 0) != goal.factor
    stuck = must & any_in_row(on_cordoned) & ~excluded_rows(view, goal)
    if stuck.any():
        brokers = np.unique(given.rows[stuck][on_cordoned[stuck]])
        ids = [int(view.broker_ids[place]) for place in brokers.tolist()]
        raise PlanRefusedError(
            f"{counted(int(stuck.sum()), 'partition')} ({_named(view, stuck)}) would have to change, with a replica on "
            f"cordoned {brokers_listed(ids)}, which Kafka refuses since 4.4 (KAFKA-20832); uncordon "
            f"{'it' if len(ids) == 1 else 'them'}, or remove {'it' if len(ids) == 1 else 'them'} too "
            f"(--remove {','.join(map(str, [*goal.remove, *ids]))})"
        )


def _check_lowered(view: ClusterView, goal: Goal, given: Given) -> None:
    """Refuse to lower factors together with changes that are not narrow: replicas in sync are to be kept."""
    if goal.factor is None or goal.is_narrow:
        return
    lowered = (count_in_row(given.rows >= 0) > goal.factor) & ~excluded_rows(view, goal)
    if lowered.any():
        raise PlanRefusedError(
            f"{counted(int(lowered.sum()), 'partition')} ({_named(view, lowered)}) would lose replicas, which goal "
            f"{goal.kind} does not choose by who is in sync; lower the factor first (--goal factor "
            f"--factor {goal.factor})"
        )


def check_completes(plan: Reassignment, goal: Goal) -> None:
    """Refuse partitions that Kafka cannot complete now: without a source, or with a target that stays out of sync.

    Replicas out of sync are waited for only where the factor changes.
    """
    if not plan.count:
        return
    if goal.factor is None:
        lost = np.zeros(plan.view.partitions.count, dtype=np.bool_)
        lost[plan.rows[any_in_row(plan.added)]] = True
        _check_led(plan.view, lost & unled(plan.view))
        return
    done, isr = completion(plan), plan.view.partitions.isr
    changed = count_in_row(plan.replicas >= 0) != count_in_row(plan.current >= 0)
    blocked = done.is_blocked & changed
    if not blocked.any():
        return
    place, listed = int(np.argmax(blocked)), plan.view.partitions.leader
    rows = np.zeros(plan.view.partitions.count, dtype=np.bool_)
    rows[plan.rows[blocked]] = True
    in_sync = 0 if isr is None else int(np.count_nonzero(isr[plan.rows[place]] >= 0))
    held = int(np.count_nonzero(plan.current[place] >= 0))
    why = (
        f"of {plan.name(place)} {in_sync} of {counted(held, 'replica')} {'is' if in_sync == 1 else 'are'} in sync, and "
        "Kafka waits for the others; bring them back in sync"
    )
    if listed is not None and int(listed[plan.rows[place]]) == NO_LEADER:
        why = f"{plan.name(place)} has no leader to copy from; bring one back"
    raise PlanRefusedError(
        f"{counted(int(blocked.sum()), 'partition')} ({_named(plan.view, rows)}) would not come to "
        f"{counted(goal.factor, 'replica')}: {why}, or exclude the topic"
    )


def refuse_row(view: ClusterView, goal: Goal, row: int) -> PlanRefusedError:
    """Return the refusal of a plan because the partition at `row` has no place."""
    if goal.new_only_receives:
        return _refuse_new_only(view, goal, row)
    remedy = "add brokers"
    cordoned = view.broker_ids[Given.read(view, goal).cordoned].tolist()
    if cordoned:
        remedy = (
            f"{brokers_listed(cordoned)} may receive nothing (all log directories cordoned): uncordon one, or {remedy}"
        )
    return PlanRefusedError(f"{partition_name(view, row)} can stand nowhere without breaking a rule; {remedy}")


def _refuse_new_only(view: ClusterView, goal: Goal, row: int) -> PlanRefusedError:
    """Return the refusal of a plan in which the partition at `row` needs more than the new brokers."""
    held = [int(number) for number in view.partitions.replicas[row].tolist() if number >= 0]
    new = sorted({number for number, _ in goal.add})
    factor = counted(goal.factor or len(held), "replica")
    rule = f"{factor} on as many racks as can be" if view.racks else factor
    hint = ", or restore racks first (--goal racks)" if view.racks and goal.kind != "racks" else ""
    return PlanRefusedError(
        f"{partition_name(view, row)} is on {_on_racks(view, held)}, and only {_on_racks(view, new)} may receive, "
        f"which is too few for {rule}; let other brokers receive too (leave out --new-only-receives){hint}"
    )


def _on_racks(view: ClusterView, ids: Sequence[int]) -> str:
    """Return brokers with the racks that are known, such as "brokers 2 (rack a), 7"."""
    racks = {int(one.id): one.rack for one in view.brokers}
    named = [str(number) if racks.get(number) is None else f"{number} (rack {racks[number]})" for number in ids]
    return brokers_listed(named, SHOWN_MAX)


def check_sources(view: ClusterView, goal: Goal) -> None:
    """Refuse to remove brokers whose partitions have no leader, or that are down with the only replicas in sync."""
    isr = view.partitions.isr
    if not goal.remove:
        return
    if not goal.is_narrow:  # Only a drain or a new factor may leave such a partition on fewer brokers.
        stuck = any_in_row(np.isin(view.partitions.replicas, goal.remove)) & unled(view) & ~excluded_rows(view, goal)
        _check_led(view, stuck)
    if isr is None:
        return
    ids = view.broker_ids
    dead = ids[~view.alive]
    gone = np.isin(isr, np.intersect1d(dead, np.array(goal.remove, dtype=np.int32)))
    alive = (isr >= 0) & ~np.isin(isr, dead)
    lost = any_in_row(gone) & ~any_in_row(alive) & ~excluded_rows(view, goal)
    _check_led(view, lost & unled(view))
    if lost.any():
        whose = "has its" if lost.sum() == 1 else "have their"
        raise PlanRefusedError(
            f"{counted(int(lost.sum()), 'partition')} ({_named(view, lost)}) {whose}"
            " only replicas in sync on brokers that are down and to be removed; bring one of them back first, or give "
            "up the records: delete the topic"
        )


def _check_led(view: ClusterView, lost: NDArray[np.bool_]) -> None:
    """Refuse to move the partitions in `lost` bool[P], which have no leader: nothing can be copied."""
    if not lost.any():
        return
    found = leaderless(view)
    at = lost[found.rows]
    lacking = distinct_ids(found.candidates[at]).tolist()
    whom = "their last leaders" if not lacking else ("one of " if len(lacking) > 1 else "") + brokers_listed(lacking)
    electable = int(np.count_nonzero(found.elected[at] != PAD))
    elect = f", or hold an unclean election, which {electable} of them can have" if electable else ""
    raise PlanRefusedError(
        f"{counted(int(lost.sum()), 'partition')} without a leader ({_named(view, lost)}): nothing can be copied to "
        f"new replicas; {whom} must return, or give up the records: delete the topic{elect}"
    )


def _named(view: ClusterView, rows: NDArray[np.bool_]) -> str:
    return listed(partition_names(view, np.flatnonzero(rows), SHOWN_MAX), int(rows.sum()))


def _any(column: Int32Array | None, count: int) -> NDArray[np.bool_]:
    return np.zeros(count, dtype=np.bool_) if column is None else any_in_row(column != PAD)
