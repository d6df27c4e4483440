"""Describe in words a plan's obstacles, its broken constraints, and its requests that Kafka would refuse.

The tool refuses a file while any reassignment runs (without --additional), and targets on brokers that are not live,
even kept ones; the controller takes fenced ones. A target on a cordoned broker is taken up to 4.3; since 4.4 the
controller refuses it (KAFKA-20832), and a broker refuses a copy into a cordoned directory that the file names. A change
of the replication factor is allowed unless --disallow-replication-factor-change is given (4.1, KIP-860).

Source: Kafka 4.3.1 ReassignPartitionsCommand (executeAssignment, verifyBrokerIds, parseExecuteAssignmentArgs),
ReplicationControlManager.validateManualPartitionAssignment; KAFKA-19975.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from importlib.resources import files

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import ClusterView, Int64Array
from broker.row_flags import any_in_row, count_in_row
from broker.units import format_size
from broker.wording import brokers_listed, counted, listed
from placement.balance.audit import least_isr
from placement.placers.usable import CORDONING_SINCE, CORDONS_REFUSED_SINCE
from placement.planning.completion import (
    NEEDS_ADDED_ONLY_SINCE,
    down_targets,
    named_down,
    unblocked_by_newer_release,
)
from placement.planning.directories import DirectoryMoves
from placement.planning.goal import SHOWN_MAX
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


@functools.cache
def _sentences() -> dict[str, tuple[bool, str]]:
    """Return whether each finding is bad, and its sentence, with places for words."""
    text = files("placement.planning").joinpath("findings.tsv").read_text("utf-8")
    rows = (line.split("\t") for line in text.splitlines()[1:])
    return {name: (is_bad == "yes", sentence) for name, is_bad, sentence in rows}


def finding(name: str, count: int, *, is_bad: bool | None = None, **words: object) -> Finding:
    """Return the finding of a name with `words` in its sentence; `is_bad` where it depends on the release."""
    bad, sentence = _sentences()[name]
    nouns = {f"{noun}s": counted(count, noun) for noun in ("partition", "replica")}
    text = sentence.format(**nouns, count=count, entries=counted(count, "entry", "entries"), **words)
    return Finding(name=name, is_bad=bad if is_bad is None else is_bad, count=count, sentence=text)


def findings(impact: Impact, *, disk_bytes: Int64Array | None = None) -> tuple[Finding, ...]:
    """Return the findings of an impact, in a fixed order; `disk_bytes` int64[B] are the disks, -1 unknown."""
    return (
        *_refusals(impact),
        *(one for batch in impact.batches for one in _held_up(batch, impact)),
        *_never_ends(impact),
        *_disks(impact, disk_bytes),
        *_min_isr(impact),
        *(one for name, rows in impact.racks.items() for one in _of_rows(impact.before, name, rows)),
        *_factors(impact),
    )


def _refusals(impact: Impact) -> Iterator[Finding]:
    is_still = not any(batch.partition_count for batch in impact.batches)
    if is_still and impact.directories == DirectoryMoves():
        yield finding("nothing-to-do", 0)
    running = _reassigning(impact.before)
    if running:
        yield finding("reassignment-running", running)
    view = impact.before
    down = {number: how for batch in impact.batches for number, how in down_targets(batch.plan, view).items()}
    if down:  # The tool refuses the file, and no copy there completes.
        gone = drained_if_gone(view, sorted(down), lead="; ")
        brokers = named_down(dict(sorted(down.items())))
        yield finding("broker-not-live", len(down), brokers=brokers, first=min(down), if_gone=gone)
    yield from _directories(impact)
    if impact.release >= CORDONING_SINCE:
        yield from _cordons(impact)


def _directories(impact: Impact) -> Iterator[Finding]:
    """Yield the directories that a broker does not have or cannot use, and whether moves between them are counted."""
    found = impact.directories
    for name, targets in (("log-dir-unknown", found.unknown), ("log-dir-offline", found.offline)):
        if targets:
            broker = targets[0].broker_id
            first = [f"{one.path} of broker {one.broker_id}" for one in targets[:SHOWN_MAX]]
            has = [one.path for one in impact.before.log_dirs if one.broker_id == broker]
            which, paths = listed(first, len(targets)), listed(has[:SHOWN_MAX], len(has))
            yield finding(name, len(targets), which=which, broker=broker, has=paths)
    if found.uncounted:
        yield finding("log-dirs-not-counted", found.uncounted)


def naming_cordoned(plan: Reassignment) -> NDArray[np.bool_]:
    """Return which rows of a plan change and name a cordoned broker, bool[P]."""
    cordoned = plan.view.broker_ids[plan.view.flag("cordoned")]
    return np.asarray(plan.changes & any_in_row(np.isin(plan.replicas, cordoned)))


def _cordons(impact: Impact) -> Iterator[Finding]:
    """Yield what the plans would put on cordoned brokers, and what else names them."""
    cordoned = impact.before.broker_ids[impact.before.flag("cordoned")]
    if not cordoned.size:
        return
    refuses = impact.release >= CORDONS_REFUSED_SINCE
    plans = [batch.plan for batch in impact.batches]
    gaining = [np.isin(plan.replicas, cordoned) & plan.added for plan in plans]
    new = sorted({int(b) for plan, at in zip(plans, gaining, strict=True) for b in plan.replicas[at].tolist()})
    count = sum(int(np.count_nonzero(any_in_row(at))) for at in gaining)
    if new:
        does = "refuses them" if refuses else "takes them, and refuses them since 4.4"
        yield finding("broker-cordoned", count, brokers=brokers_listed(new), does=does)
    kept = sum(int(naming_cordoned(plan).sum()) for plan in plans) - count
    if kept:
        does = "refuses" if refuses else "takes, and since 4.4 refuses,"
        yield finding("cordoned-kept", kept, is_bad=refuses, does=does)
    copied = [target for plan in plans for target in plan.log_dirs if int(target.broker_id) in cordoned.tolist()]
    if copied:
        yield finding("log-dir-cordoned", len(copied), which=f"{copied[0].path} of broker {copied[0].broker_id}")


def _held_up(batch: BatchImpact, impact: Impact) -> Iterator[Finding]:
    plan, done, release = batch.plan, batch.done, impact.release
    waiting = int(np.count_nonzero(any_in_row(done.waits_for)))
    if waiting:
        which, rule = _with_brokers(plan, done.waits_for), _rule_of_waiting(impact)
        down = np.intersect1d(plan.replicas[done.waits_for], plan.view.broker_ids[~plan.view.alive])
        gone = drained_if_gone(plan.view, down.tolist(), lead="; ")
        awaited = _awaited(impact)
        yield finding("blocked", waiting, release=release, awaited=awaited, which=which, rule=rule, if_gone=gone)
    is_newest = not impact.zookeeper and release >= NEEDS_ADDED_ONLY_SINCE
    freed = int(np.count_nonzero(unblocked_by_newer_release(plan))) if is_newest else 0
    if freed:
        yield finding("blocked-before-4.3", freed, release=release)
    never = any_in_row(done.never_joins)
    if never.any():
        dead = brokers_listed(np.unique(plan.replicas[done.never_joins]).tolist())
        which = _with_brokers(plan, done.never_joins)
        yield finding("never-joins", int(np.count_nonzero(never)), which=which, brokers=dead)
    yield from _of_rows(plan.view, "stuck", plan.rows[done.is_stuck & ~never])


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
    first = [f"{plan.name(at)} ({brokers_listed(plan.replicas[at][marked[at]].tolist())})" for at in places[:SHOWN_MAX]]
    return listed(first, int(places.size))


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
        endless = impact.before.broker_ids[np.isinf(batch.times.seconds_in) | np.isinf(batch.times.seconds_out)]
        if endless.size:
            where = "" if len(impact.batches) == 1 else f" of batch {number}"
            yield finding("never-ends", int(endless.size), where=where, brokers=brokers_listed(endless.tolist()))


def _disks(impact: Impact, disk_bytes: Int64Array | None) -> Iterator[Finding]:
    known = impact.brokers.disks
    if known is None or disk_bytes is None:
        return
    over = np.flatnonzero((disk_bytes >= 0) & (known.peak > disk_bytes))
    if over.size:
        words = [
            f"broker {impact.before.brokers[row].id} holds {format_size(int(known.peak[row]))} of "
            f"{format_size(int(disk_bytes[row]))}"
            for row in over[:SHOWN_MAX].tolist()
        ]
        yield finding("disk-over-capacity", int(over.size), which=listed(words, int(over.size)))


def _min_isr(impact: Impact) -> Iterator[Finding]:
    states = impact.under_min_isr
    if states.before is not None and states.during is not None and states.during > states.before:
        yield finding("under-min-isr", states.during - states.before)
    least = least_isr(impact.before, None)
    if least is not None:
        short = np.flatnonzero((_factor(impact.after) < least) & (_factor(impact.before) >= least))
        yield from _of_rows(impact.before, "factor-below-min-isr", short)


def _factors(impact: Impact) -> Iterator[Finding]:
    view, before, after = impact.before, _factor(impact.before), _factor(impact.after)
    yield from _of_rows(view, "factor-raised", np.flatnonzero(after > before))
    yield from _of_rows(view, "factor-lowered", np.flatnonzero(after < before))
    moves = np.zeros(view.partitions.count, dtype=np.bool_)
    for batch in impact.batches:
        moves[batch.plan.rows[any_in_row(batch.plan.added)]] = True
    yield from _of_rows(view, "single-replica-moves", np.flatnonzero(moves & (before == 1) & (after == 1)))


def _of_rows(view: ClusterView, name: str, rows: Int64Array) -> Iterator[Finding]:
    """Yield the finding about the partitions in `rows`, if there are any."""
    if rows.size:
        yield finding(name, int(rows.size), names=named(view, rows))


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
    return listed(partition_names(view, rows, SHOWN_MAX), int(rows.size))
