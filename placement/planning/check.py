"""Check a plan against its input, without any solver: is it feasible, and is it at its proven lower bound?

The rules are read from the view and the goal anew (given.py); nothing is taken from the planner but the plan itself,
its bounds and its prices (certificate.py). Its rack rule (`_crowded`) is written independently of rules.py on purpose.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import PAD, ClusterView, Int32Array, Int64Array
from broker.row_flags import any_in_row, count_each, count_in_row, distinct_in_row, members
from broker.wording import counted
from placement.planning.byte_bounds import faults_of_byte_bounds
from placement.planning.certificate import Proof, faults_of_bounds, lower_bound, uneven_topics
from placement.planning.given import Given, added, bytes_of, leader_question, leading, replica_question, staying_leaders
from placement.planning.goal import Goal, copy_sizes, shares
from placement.planning.question import Question
from placement.planning.reassignment import partition_name, widened


@attrs.frozen(kw_only=True, eq=False)
class Certificate:
    """Hold the proofs of a plan: of its replicas, None where none moves, and of its leaders."""

    replicas: Proof | None
    leaders: Proof


@attrs.frozen(kw_only=True)
class Tally:
    """Count what a plan changes, and the least that any plan must change.

    `moved` are new replicas. `lost` are leaders whose replica goes though their broker stays. `changed` are preferred
    leaders that give way to another of the replicas chosen; `leader_changes` are all who lead now and not afterwards,
    and `leader_changes_least` what the loads of leaders alone force on any plan, whatever its replicas; where leaders
    alone move, `changed_bound` if that is more and preferred leaders lead.

    A plan by bytes has no bounds of `moved` and `lost` (None) but one of `moved_bytes`, of which it may copy more, as
    whole partitions seldom fit: by `moved_bytes_gap`, the part that is above the bound. By replicas these are None.
    """

    moved: int
    moved_bound: int | None
    lost: int
    lost_bound: int | None
    changed: int
    changed_bound: int
    leader_changes: int
    leader_changes_least: int
    moved_bytes: int | None = None
    moved_bytes_bound: int | None = None
    moved_bytes_gap: float | None = None

    @property
    def is_least(self) -> bool:
        """Return whether what is proven is at its bounds."""
        return all(count == bound for _, count, bound in self.proven) and not self.moved_bytes_gap

    @property
    def proven(self) -> tuple[tuple[str, int | None, int | None], ...]:
        """Return what a certificate proves: a name, the count, and its bound."""
        leaders = ("leaders change", self.changed, self.changed_bound)
        if self.moved_bytes is not None:
            return (leaders,)
        moved, lost = self.moved_bound, self.lost_bound
        return ("replicas move", self.moved, moved), ("leaders lose their replica", self.lost, lost), leaders


def tally(view: ClusterView, goal: Goal, target: Int32Array, certificate: Certificate) -> Tally:
    """Return a plan's changes and their lower bounds; `view` includes added brokers, `target` holds positions."""
    given = Given.read(view, goal)
    new = (target >= 0) & ~members(target, given.rows)
    moved = int(new.sum())
    lost = 0
    lost_bound: int | None = 0
    moved_bound: int | None = 0
    moved_bytes = bytes_bound = None
    if certificate.replicas is not None:
        question = replica_question(view, goal, given)
        losable = (question.leader >= 0) & (question.wanted > 0)
        lost = int((losable & ~any_in_row(target == question.leader[:, None])).sum())
        least = lower_bound(question, certificate.replicas)
        moved_bound, lost_bound = divmod(least, certificate.replicas.weight)
        if question.weights is not None:
            bytes_bound, moved_bound, lost_bound = least, None, None
            moved_bytes = _summed(question.weights, count_in_row(new).astype(np.int64))
    chosen = leading(given, target)
    asked = leader_question(given, target)
    changed = int(((asked.leader >= 0) & (asked.wanted > 0) & (chosen != asked.leader)).sum())
    others = (given.listed >= 0) & (chosen != given.listed)
    led = count_each(given.listed, given.live.size)
    over = np.where(given.live, np.maximum(led - certificate.leaders.high, 0), np.where(given.removed, led, 0))
    under = np.where(given.live, np.maximum(certificate.leaders.low - led, 0), 0)
    leaderless = int(((given.listed < 0) & (chosen >= 0)).sum())
    changed_bound = lower_bound(asked, certificate.leaders)
    changes_least = max(int(over.sum()), int(under.sum()) - leaderless)
    # Where only leaders change, all plans choose among the same replicas, so the prices hold for each of them.
    if certificate.replicas is None and np.array_equal(given.leader, given.listed):
        changes_least = max(changes_least, changed_bound)
    return Tally(
        moved=moved,
        moved_bound=moved_bound,
        lost=lost,
        lost_bound=lost_bound,
        changed=changed,
        changed_bound=changed_bound,
        leader_changes=int(others.sum()),
        leader_changes_least=changes_least,
        moved_bytes=moved_bytes,
        moved_bytes_bound=bytes_bound,
        moved_bytes_gap=_gap(moved_bytes, bytes_bound),
    )


def _summed(sizes: Int64Array, counts: Int64Array) -> int:
    """Return the sum of products, exactly: halves of sizes, as sums of whole ones might need more than 64 bits."""
    low = sizes & ((1 << 26) - 1)
    return (int(((sizes >> 26) * counts).sum()) << 26) + int((low * counts).sum())


def _gap(copied: int | None, bound: int | None) -> float | None:
    """Return which part of the copied bytes is above the bound; below 0 where the bound says more than is possible."""
    if copied is None or bound is None:
        return None
    return (copied - bound) / max(copied, 1)


def faults(view: ClusterView, goal: Goal, target: Int32Array, certificate: Certificate) -> tuple[str, ...]:
    """Return everything that is wrong with a plan; `view` has the added brokers, `target` positions of all replicas."""
    given = Given.read(view, goal)
    found = _faults_of_rows(view, goal, given, target)
    for proof in (certificate.replicas, certificate.leaders):
        if proof is not None and proof.is_even != goal.is_even:
            found.append(f"the bounds are not those of goal {goal.kind}")
    if (certificate.replicas is None) != goal.only_leaders:
        found.append("a proof of replicas is missing, or is there though only leaders change")
    after = count_each(target, given.live.size)
    if certificate.replicas is not None:
        question = replica_question(view, goal, given)
        if goal.by_bytes:
            found += _faults_of_bytes(view, goal, question, certificate.replicas, target)
        else:
            before = count_each(given.rows, given.live.size)
            found += _faults_of_loads(view, question, certificate.replicas, before, after, "replicas")
        found += _faults_of_topics(view, goal, question, certificate.replicas, target)
    asked = leader_question(given, target)
    led = count_each(given.leader, given.live.size)
    chosen = leading(given, target)
    lead = count_each(chosen, given.live.size)
    found += _faults_of_loads(view, asked, certificate.leaders, led, lead, "leaders")
    counts = tally(view, goal, target, certificate)
    if counts.moved_bytes_gap is not None and counts.moved_bytes_gap < 0:
        found.append(f"{counts.moved_bytes} bytes move, fewer than the {counts.moved_bytes_bound} that any plan needs")
    for what, count, bound in counts.proven:
        if count != bound:
            found.append(f"{count} {what}, and the prices prove {bound}")
    return tuple(found)


def _faults_of_rows(view: ClusterView, goal: Goal, given: Given, target: Int32Array) -> list[str]:
    """Return the rules that targets break, each with how many partitions break it and one of them."""
    held = target >= 0
    new = held & ~members(target, given.rows)

    def on(flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.asarray(np.append(flags, False)[target])

    twice = distinct_in_row(target) < count_in_row(held)
    width = max(target.shape[1], given.rows.shape[1])
    is_added = np.append(added(view, goal), False)
    same = (widened(target, width) == widened(given.rows, width)).all(axis=1)
    turned = _first_of(target) != _first_of(given.rows)
    allowed = members(target, np.where(given.stays | given.own, given.rows, PAD)) | (new & given.fresh[:, None])
    fixed = staying_leaders(given, target)
    rules = [
        ("a broker holds two replicas", twice),
        ("a partition changes that may not", ~given.changes & ~same),
        ("a replica stands on a broker that is removed", given.changes & any_in_row(on(given.removed))),
        ("a broker that is down receives a replica", any_in_row(new & on(given.fenced))),
        ("a cordoned broker receives a replica", any_in_row(new & on(given.cordoned))),
        ("a broker that is down becomes the preferred leader", turned & _first_is(target, given.fenced)),
        ("a replica that stays is lost", any_in_row(given.stays & ~members(given.rows, target))),
        ("a replica is kept instead of one in sync", given.changes & any_in_row(held & ~new & ~allowed)),
        ("a replica is new where none is needed", given.changes & any_in_row(new & ~allowed)),
        ("a partition has no leader to copy a new replica from", any_in_row(new) & given.unled),
        ("a leader changes that could stay", given.changes & (fixed >= 0) & (leading(given, target) != fixed)),
        (
            "the number of replicas is not that asked",
            given.changes & (count_in_row(held) != given.wanted + count_in_row(given.stays)),
        ),
    ]
    if goal.only_leaders:
        rules.append(("a replica moves though only leaders may", any_in_row(new)))
    else:
        crowded = given.changes & _crowded(view, given, target)
        rules.append(("replicas stand on fewer racks than they can", crowded))
    if goal.new_only_receives:
        rules.append(("a broker that is not new receives a replica", any_in_row(new & ~is_added[target])))
    found = []
    for what, broken in rules:
        if broken.any():
            row = int(np.argmax(broken))
            found.append(f"{what}: {counted(int(broken.sum()), 'partition')}, such as {partition_name(view, row)}")
    return found


def _first_of(rows: Int32Array) -> Int32Array:
    """Return the preferred leader of each row, int32[P], -1 for a row without replicas."""
    return rows[:, 0] if rows.shape[1] else np.full(rows.shape[0], PAD, dtype=np.int32)


def _first_is(rows: Int32Array, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which rows have a flagged broker as their preferred leader, bool[P]."""
    return np.append(flags, False)[_first_of(rows)]


def _crowded(view: ClusterView, given: Given, target: Int32Array) -> NDArray[np.bool_]:
    """Return which partitions stand on fewer racks than possible, or share a rack where none must; bool[P]."""
    rack = np.append(Question.rack_numbers(view), PAD)
    stays = np.where(given.stays, rack[given.rows], PAD)
    chosen = np.where(given.own, rack[given.rows], PAD)
    racks = np.where(target >= 0, rack[target], PAD)
    racks = np.where(members(target, np.where(given.stays, given.rows, PAD)) | members(racks, stays), PAD, racks)
    pool = np.unique(rack[:-1][given.pool])
    open_racks = pool.size - distinct_in_row(np.where(np.isin(stays, pool), stays, PAD))
    few = distinct_in_row(np.where(members(chosen, stays), PAD, chosen))
    return np.asarray(distinct_in_row(racks) < np.minimum(np.where(given.fresh, open_racks, few), given.wanted))


def _faults_of_loads(
    view: ClusterView, question: Question, proof: Proof, before: Int64Array, after: Int64Array, what: str
) -> list[str]:
    """Return what is wrong with the bounds of loads, and the brokers whose loads int64[B] lie outside them."""
    found = [f"{what}: {fault}" for fault in faults_of_bounds(question, proof, before)]
    found += [f"{what}: {fault}" for fault in _outside(view, question, proof, after, "")]
    if proof.is_even and proof.block.size and np.array_equal(proof.block >= 0, question.live):
        held = np.bincount(proof.block[question.live], after[question.live], proof.totals.size).astype(np.int64)
        if not np.array_equal(held, proof.totals):
            found.append(f"{what}: blocks of brokers hold {held.tolist()}, not {proof.totals.tolist()}")
    return found


def _faults_of_bytes(view: ClusterView, goal: Goal, question: Question, proof: Proof, target: Int32Array) -> list[str]:
    """Return what is wrong with the bounds in bytes, and the brokers whose bytes lie outside them."""
    sizes, count = copy_sizes(view), question.live.size
    before = bytes_of(view.replica_rows, sizes, count)
    found = faults_of_byte_bounds(
        question, proof, shares=shares(view, goal), tolerance=goal.tolerance_millionths, before=before
    )
    found += _outside(view, question, proof, bytes_of(target, sizes, count), " bytes")
    return [f"bytes: {fault}" for fault in found]


def _outside(view: ClusterView, question: Question, proof: Proof, after: Int64Array, unit: str) -> list[str]:
    """Return the first five brokers whose loads int64[B] lie outside their bounds."""
    outside = question.live & ((after < proof.low) | (after > proof.high))
    return [
        f"broker {view.brokers[place].id} holds {int(after[place])}{unit}, outside {int(proof.low[place])} to "
        f"{int(proof.high[place])}"
        for place in np.flatnonzero(outside)[:5].tolist()
    ]


def _faults_of_topics(view: ClusterView, goal: Goal, question: Question, proof: Proof, target: Int32Array) -> list[str]:
    """Return the topics of which a broker holds less or more than the bounds by topic allow."""
    if (proof.topics is None) == goal.per_topic:
        return ["bounds by topic are missing, or are there though nobody asked"]
    if proof.topics is None:
        return []
    count = question.live.size
    if any(one.shape != (len(view.topics), count) for one in (proof.topics.low, proof.topics.high, proof.topics.price)):
        return [f"bounds by topic are those of {proof.topics.low.shape[0]} topics; there are {len(view.topics)}"]
    placed = (target >= 0) & np.append(question.live, False)[target] & (question.wanted > 0)[:, None]
    cells = question.topic.astype(np.int64)[:, None] * count + target
    held = np.bincount(cells[placed], minlength=len(view.topics) * count).reshape(-1, count)
    asked = np.zeros(len(view.topics), dtype=np.bool_)
    asked[question.topic[question.wanted > 0]] = True
    wrong = question.live & asked[:, None] & ((held < proof.topics.low) | (held > proof.topics.high))
    spread = question.live & asked[:, None] & (proof.topics.high - proof.topics.low > 1)
    found = []
    for what, broken in (("outside its bounds by topic", wrong), ("between bounds wider than one replica", spread)):
        if broken.any():
            topic, broker = (int(place[0]) for place in np.nonzero(broken))
            found.append(
                f"broker {view.brokers[broker].id} holds {int(held[topic, broker])} replicas of "
                f"{view.topics[topic].name}, {what}"
            )
    uneven = uneven_topics(question, proof.topics)
    if uneven:
        name = view.topics[uneven[0]].name
        found.append(f"the bounds of {counted(len(uneven), 'topic')} are not the most even, such as {name}")
    return found
