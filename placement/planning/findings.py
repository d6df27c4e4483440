"""Describe in words a plan's obstacles, its broken constraints, and its requests that Kafka would refuse.

Bad is what stops the plan or makes the cluster worse at keeping records: a refusal, a partition that
does not complete, a copy that never ends, a disk that runs over, a partition newly under min-ISR. A partition newly on
fewer racks than it could be is so too.

How: refusals are those of kafka-reassign-partitions --execute and of the controller. The tool refuses a file while any
reassignment runs (without --additional), and targets on brokers that are not live, even kept ones; the controller takes
fenced ones. Neither looks at cordoned log directories in 4.3, so a target on a cordoned broker is taken; since 4.4 the
controller refuses each target that names one (KAFKA-20832). A broker refuses a copy into a cordoned directory that the
file names. The controller allows a change of the replication factor unless --disallow-replication-factor-change is
given (4.1, KIP-860), so a change is a finding.

Source: Kafka 4.3.1 ReassignPartitionsCommand (executeAssignment, verifyBrokerIds, parseExecuteAssignmentArgs),
ReplicationControlManager.validateManualPartitionAssignment; KAFKA-19975.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import ClusterView, Int64Array
from broker.row_flags import any_in_row, count_in_row
from broker.units import format_size
from broker.wording import brokers_listed, counted, listed
from placement.balance.audit import least_isr
from placement.placers.usable import CORDONING_SINCE, CORDONS_REFUSED_SINCE
from placement.planning.completion import NEEDS_ADDED_ONLY_SINCE, unblocked_by_newer_release
from placement.planning.dead_targets import NAMES_MAX, down_targets, named_down
from placement.planning.directories import DirectoryMoves
from placement.planning.impact import BatchImpact, Impact
from placement.planning.plan import drain_of
from placement.planning.reassignment import BoolMatrix, Reassignment, partition_names


@attrs.frozen(kw_only=True)
class Finding:
    """Hold one finding: its name, whether it is bad, how many it concerns, and one sentence."""

    name: str
    is_bad: bool
    count: int
    sentence: str


def findings(impact: Impact, *, disk_bytes: Int64Array | None = None) -> tuple[Finding, ...]:
    """Return the findings of an impact, in a fixed order; `disk_bytes` int64[B] are the disks, -1 unknown."""
    return (
        *_refusals(impact),
        *(one for batch in impact.batches for one in _held_up(batch, impact)),
        *_never_ends(impact),
        *_disks(impact, disk_bytes),
        *_min_isr(impact),
        *_racks(impact),
        *_factors(impact),
    )


def _refusals(impact: Impact) -> Iterator[Finding]:
    first = impact.batches[0].plan
    is_still = not any(batch.partition_count for batch in impact.batches)
    if is_still and impact.directories == DirectoryMoves():
        yield Finding(name="nothing-to-do", is_bad=False, count=0, sentence="The cluster fulfils the plan already.")
    running = _reassigning(first.view)
    if running:
        yield Finding(
            name="reassignment-running",
            is_bad=True,
            count=running,
            sentence=f"Being reassigned now: {counted(running, 'partition')}. kafka-reassign-partitions --execute "
            "refuses without --additional, and their new replicas are among the replicas of this dump already.",
        )
    yield from _down(impact)
    yield from _directories(impact)
    if impact.release >= CORDONING_SINCE:
        yield from _cordons(impact)


def _down(impact: Impact) -> Iterator[Finding]:
    """Yield the brokers that are down and that targets name: the tool refuses the file, and no copy there completes."""
    view = impact.before
    found = {number: how for batch in impact.batches for number, how in down_targets(batch.plan, view).items()}
    if not found:
        return
    yield Finding(
        name="broker-not-live",
        is_bad=True,
        count=len(found),
        sentence=f"Targets name {named_down(dict(sorted(found.items())))}; kafka-reassign-partitions --execute refuses "
        f'the whole file ("Unknown broker id {min(found)}"), as it knows live brokers only'
        f"{drained_if_gone(view, sorted(found), lead='; ')}.",
    )


def _directories(impact: Impact) -> Iterator[Finding]:
    """Yield the directories that a broker does not have or cannot use, and whether moves between them are counted."""
    found = impact.directories
    for name, targets, what in (
        ("log-dir-unknown", found.unknown, "brokers do not have, which they refuse"),
        ("log-dir-offline", found.offline, "are offline, which brokers refuse"),
    ):
        if targets:
            first = [f"{one.path} of broker {one.broker_id}" for one in targets[:NAMES_MAX]]
            has = [one.path for one in impact.before.log_dirs if one.broker_id == targets[0].broker_id]
            yield Finding(
                name=name,
                is_bad=True,
                count=len(targets),
                sentence=f"Named log directories that {what}: {listed(first, len(targets))}; broker "
                f"{targets[0].broker_id} has {listed(has[:NAMES_MAX], len(has))}.",
            )
    if found.uncounted:
        yield Finding(
            name="log-dirs-not-counted",
            is_bad=False,
            count=found.uncounted,
            sentence="Moves between log directories are not counted, as it is not known which directory holds a "
            f"replica: {counted(found.uncounted, 'replica')}; --sizes with what kafka-log-dirs printed says it.",
        )


def naming_cordoned(plan: Reassignment) -> NDArray[np.bool_]:
    """Return which rows of a plan change and name a cordoned broker, bool[P]."""
    return np.asarray(plan.changes & any_in_row(np.isin(plan.replicas, _cordoned_ids(plan.view))))


def _cordoned_ids(view: ClusterView) -> list[int]:
    return [int(one.id) for one in view.brokers if one.cordoned]


def _cordons(impact: Impact) -> Iterator[Finding]:
    """Yield what the plans would put on cordoned brokers, and what else names them."""
    cordoned = _cordoned_ids(impact.before)
    if not cordoned:
        return
    refuses = impact.release >= CORDONS_REFUSED_SINCE
    plans = [batch.plan for batch in impact.batches]
    gaining = [np.isin(plan.replicas, cordoned) & plan.added for plan in plans]
    new = sorted({int(b) for plan, at in zip(plans, gaining, strict=True) for b in plan.replicas[at].tolist()})
    count = sum(int(np.count_nonzero(any_in_row(at))) for at in gaining)
    if new:
        yield Finding(
            name="broker-cordoned",
            is_bad=True,
            count=count,
            sentence=f"New replicas go to cordoned {brokers_listed(new)}: {counted(count, 'partition')}. The "
            "controller "
            + ("refuses them" if refuses else "takes them, and refuses them since 4.4")
            + " (KAFKA-20832).",
        )
    kept = sum(int(naming_cordoned(plan).sum()) for plan in plans) - count
    if kept:
        yield Finding(
            name="cordoned-kept",
            is_bad=refuses,
            count=kept,
            sentence=f"A replica stays on a cordoned broker: {counted(kept, 'partition')}. The controller "
            + ("refuses" if refuses else "takes, and since 4.4 refuses,")
            + " a target that names one (KAFKA-20832) until it is uncordoned.",
        )
    copied = [target for plan in plans for target in plan.log_dirs if int(target.broker_id) in set(cordoned)]
    if copied:
        yield Finding(
            name="log-dir-cordoned",
            is_bad=True,
            count=len(copied),
            sentence=f"Named log directories are cordoned: {counted(len(copied), 'entry', 'entries')}, such as "
            f"{copied[0].path} of broker {copied[0].broker_id}; the broker refuses them "
            "(InvalidReplicaAssignmentException).",
        )


def _held_up(batch: BatchImpact, impact: Impact) -> Iterator[Finding]:
    plan, done, release = batch.plan, batch.done, impact.release
    waiting = np.flatnonzero(any_in_row(done.waits_for))
    if waiting.size:
        awaited = np.unique(plan.replicas[done.waits_for])
        yield Finding(
            name="blocked",
            is_bad=True,
            count=int(waiting.size),
            sentence=f"Will not complete on {release} before {_awaited(impact)}: "
            f"{counted(int(waiting.size), 'partition')}, {_with_brokers(plan, done.waits_for)}"
            f"{_rule_of_waiting(impact)}{_if_gone(plan.view, awaited)}.",
        )
    is_newest = not impact.zookeeper and release >= NEEDS_ADDED_ONLY_SINCE
    freed = int(np.count_nonzero(unblocked_by_newer_release(plan))) if is_newest else 0
    if freed:
        yield Finding(
            name="blocked-before-4.3",
            is_bad=False,
            count=freed,
            sentence=f"Blocked from 3.8 to 4.2 by a kept replica that is out of sync, and no longer on {release} "
            f"(KAFKA-19975): {counted(freed, 'partition')}.",
        )
    never = any_in_row(done.never_joins)
    if never.any():
        dead = np.unique(plan.replicas[done.never_joins])
        yield Finding(
            name="never-joins",
            is_bad=True,
            count=int(np.count_nonzero(never)),
            sentence=f"Never completes, as a new replica on a broker that is down never joins the ISR: "
            f"{counted(int(np.count_nonzero(never)), 'partition')}, {_with_brokers(plan, done.never_joins)}; "
            f"bring {brokers_listed(dead.tolist())} back first, or choose other brokers.",
        )
    what = "Cannot complete, as no member of the ISR stays, or nobody leads"
    yield from _of_rows(plan.view, "stuck", True, what, plan.rows[done.is_stuck & ~never])


def _awaited(impact: Impact) -> str:
    if impact.zookeeper:
        return "every replica of the target is in the ISR, which ZooKeeper's controller waits for"
    return "kept replicas that are out of sync are back"


def _rule_of_waiting(impact: Impact) -> str:
    if impact.zookeeper:
        return ""
    if impact.release < NEEDS_ADDED_ONLY_SINCE:
        return f"; from {NEEDS_ADDED_ONLY_SINCE} on they wait only if they lose more replicas than they gain"
    return "; they lose more replicas than they gain, and then every target must be in sync"


def _with_brokers(plan: Reassignment, marked: BoolMatrix) -> str:
    """Return the first partitions with a marked replica, each with the brokers of these, such as "t-0 (broker 3)"."""
    places = np.flatnonzero(any_in_row(marked))
    first = [f"{plan.name(at)} ({brokers_listed(plan.replicas[at][marked[at]].tolist())})" for at in places[:NAMES_MAX]]
    return listed(first, int(places.size))


def _if_gone(view: ClusterView, ids: NDArray[np.int32]) -> str:
    """Return what to do about those of `ids` that are down if they never come back; nothing if none is down."""
    return drained_if_gone(view, np.intersect1d(ids, view.broker_ids[~view.alive]).tolist(), lead="; ")


def drained_if_gone(view: ClusterView, ids: Sequence[int], *, lead: str = "") -> str:
    """Return how to plan without brokers that are gone for good, or why not, after `lead`; nothing for no brokers."""
    if not ids:
        return ""
    gone = f"{lead}if {'it is' if len(ids) == 1 else 'they are'} gone for good: "
    drain = drain_of(view, ids)
    if drain.refused is not None:
        return f"{gone}a drain is refused as things stand ({drain.refused})"
    return f"{gone}plan --goal {drain.goal} --remove {','.join(map(str, ids))}"


def _never_ends(impact: Impact) -> Iterator[Finding]:
    for number, batch in enumerate(impact.batches, start=1):
        if batch.times is None:
            continue
        endless = np.isinf(batch.times.seconds_in) | np.isinf(batch.times.seconds_out)
        if endless.any():
            brokers = [int(impact.before.brokers[row].id) for row in np.flatnonzero(endless).tolist()]
            where = "" if len(impact.batches) == 1 else f" of batch {number}"
            yield Finding(
                name="never-ends",
                is_bad=True,
                count=len(brokers),
                sentence=f"The copy{where} never ends at {brokers_listed(brokers)}: what clients produce to the moving "
                "partitions reaches the throttle. A higher throttle would do, or fewer partitions at a time.",
            )


def _disks(impact: Impact, disk_bytes: Int64Array | None) -> Iterator[Finding]:
    known = impact.brokers.disks
    if known is None or disk_bytes is None:
        return
    over = np.flatnonzero((disk_bytes >= 0) & (known.peak > disk_bytes))
    if over.size:
        words = [
            f"broker {impact.before.brokers[row].id} holds {format_size(int(known.peak[row]))} of "
            f"{format_size(int(disk_bytes[row]))}"
            for row in over[:NAMES_MAX].tolist()
        ]
        yield Finding(
            name="disk-over-capacity",
            is_bad=True,
            count=int(over.size),
            sentence=f"At the peak {listed(words, int(over.size))}; smaller batches, or a plan that moves less there, "
            "would do.",
        )


def _min_isr(impact: Impact) -> Iterator[Finding]:
    states = impact.under_min_isr
    if states.before is not None and states.during is not None and states.during > states.before:
        count = states.during - states.before
        yield Finding(
            name="under-min-isr",
            is_bad=True,
            count=count,
            sentence=f"Under min-ISR once complete, and not now: {counted(count, 'partition')}; too few kept replicas "
            "are in sync.",
        )
    least = least_isr(impact.before, None)
    if least is None:
        return
    before, after = _factor(impact.before), _factor(impact.after)
    short = np.flatnonzero((after < least) & (before >= least))
    what = (
        "Fewer replicas than min.insync.replicas, so that brokers ask for all of them and one out of sync stops "
        "acks=all"
    )
    yield from _of_rows(impact.before, "factor-below-min-isr", True, what, short)


def _racks(impact: Impact) -> Iterator[Finding]:
    for name, rows, what, is_bad in (
        ("racks-broken", impact.racks_broken, "On fewer racks than could be, and not now", True),
        (
            "racks-kept",
            impact.racks_kept,
            "Still on fewer racks than could be, though the plan moves them (plan --goal racks restores racks)",
            False,
        ),
        ("racks-mended", impact.racks_mended, "On fewer racks than could be now, and no longer after", False),
    ):
        if rows is not None:
            yield from _of_rows(impact.before, name, is_bad, what, rows)


def _factors(impact: Impact) -> Iterator[Finding]:
    view, before, after = impact.before, _factor(impact.before), _factor(impact.after)
    what = (
        "replicas than now, which Kafka allows in silence unless (since 4.1) --disallow-replication-factor-change is "
        "given"
    )
    yield from _of_rows(view, "factor-raised", False, f"More {what}", np.flatnonzero(after > before))
    yield from _of_rows(view, "factor-lowered", False, f"Fewer {what}", np.flatnonzero(after < before))
    moves = np.zeros(view.partitions.count, dtype=np.bool_)
    for batch in impact.batches:
        moves[batch.plan.rows[any_in_row(batch.plan.added)]] = True
    single = np.flatnonzero(moves & (before == 1) & (after == 1))
    yield from _of_rows(view, "single-replica-moves", False, "The only replica moves, and the leader with it", single)


def _of_rows(view: ClusterView, name: str, is_bad: bool, what: str, rows: Int64Array) -> Iterator[Finding]:
    """Yield the finding about the partitions in `rows`, if there are any."""
    if rows.size:
        sentence = f"{what}: {counted(int(rows.size), 'partition')}, {named(view, rows)}."
        yield Finding(name=name, is_bad=is_bad, count=int(rows.size), sentence=sentence)


def _reassigning(view: ClusterView) -> int:
    flags = np.zeros(view.partitions.count, dtype=np.bool_)
    for column in (view.partitions.adding, view.partitions.removing):
        if column is not None and column.size:
            flags |= any_in_row(column >= 0)
    return int(np.count_nonzero(flags))


def _factor(view: ClusterView) -> NDArray[np.intp]:
    return np.asarray(count_in_row(view.partitions.replicas >= 0))


def named(view: ClusterView, rows: Int64Array) -> str:
    """Return the names of the partitions in `rows`: the first by topic and number, and how many more there are."""
    return listed(partition_names(view, rows, NAMES_MAX), int(rows.size))
