"""Check a plan against its input, without any solver: is it feasible, and does it cost what no plan can undercut?

What it decides: everything that is wrong with a plan and its certificate, in sentences; nothing wrong is no sentence.

A plan is feasible if targets are distinct brokers that may hold replicas, as many as asked; as many racks as can be;
replicas on fenced brokers and excluded topics stay; new replicas only where they may be; loads within their bounds.
It is optimal if the bounds are the most even ones (or, for goals that only drain or mend, as uneven as loads were), and
moved replicas, lost leaders and changed leaders are at their lower bounds (certificate.py).

How: the rules are read from the view and the goal anew; nothing is taken from the planner but the plan itself, its
bounds and its prices.

Example: a plan with one replica put on another broker, out of bounds, costs what its bound says; the loads tell.

Left out: what happens while the plan runs (impact).

Source: ours.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import PAD, ClusterView, Int32Array, Int64Array
from broker.row_flags import any_in_row, count_in_row, distinct_in_row
from broker.wording import counted
from placement.balance.loads import broker_rows
from placement.reassignment.byte_band import faults_of_band
from placement.reassignment.case_bound import least_bytes
from placement.reassignment.certificate import (
    Proof,
    Question,
    faults_of_bounds,
    first_without_place,
    lower_bound,
    uneven_topics,
)
from placement.reassignment.goal import Goal, copy_sizes, excluded_rows, shares


@attrs.frozen(kw_only=True, eq=False)
class Certificate:
    """Hold the proofs of a plan: of its replicas, None where none moves, and of its leaders."""

    replicas: Proof | None
    leaders: Proof


@attrs.frozen(kw_only=True)
class Tally:
    """Count what a plan changes, and the least that any plan must change.

    `moved` are new replicas. `lost` are leaders whose replica goes though their broker stays. `changed` are leaders
    that give way to another of the replicas chosen; `leader_changes` are all leaders that are others afterwards, and
    `leader_changes_least` what the loads of leaders alone force on any plan, whatever its replicas; where leaders alone
    move, `changed_bound` if that is more.

    A plan by bytes has no bounds of `moved` and `lost` by themselves (None) but one of `moved_bytes`, and, unless sizes
    are too great for it, one of `moved` and `lost` together among the plans with as few bytes. By replicas these three
    are None.

    A plan to bytes within a tolerance may copy more than `moved_bytes_bound`, as whole partitions seldom fit: by
    `moved_bytes_gap`, the part of `moved_bytes` that is above it. Other plans have none.
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
    moved_or_lost_bound: int | None = None
    moved_bytes_gap: float | None = None

    @property
    def is_least(self) -> bool:
        """Return whether what is proven is at its bounds."""
        return all(count == bound for _, count, bound in self.proven) and not self.moved_bytes_gap

    @property
    def proven(self) -> tuple[tuple[str, int | None, int | None], ...]:
        """Return what a certificate proves: a name, the count, and its bound."""
        leaders = ("leaders change", self.changed, self.changed_bound)
        if self.moved_bytes is None:
            moved, lost = self.moved_bound, self.lost_bound
            return ("replicas move", self.moved, moved), ("leaders lose their replica", self.lost, lost), leaders
        if self.moved_bytes_gap is not None:
            return (leaders,)
        sums = ("replicas move and leaders lose theirs", self.moved + self.lost, self.moved_or_lost_bound)
        together = () if self.moved_or_lost_bound is None else (sums,)
        return ("bytes move", self.moved_bytes, self.moved_bytes_bound), *together, leaders


@attrs.frozen(kw_only=True, eq=False)
class _Input:
    """The view and the goal as positions of brokers; see `Question`."""

    rows: Int32Array
    live: NDArray[np.bool_]
    fenced: NDArray[np.bool_]
    cordoned: NDArray[np.bool_]
    removed: NDArray[np.bool_]
    changes: NDArray[np.bool_]
    wanted: Int64Array
    leader: Int32Array

    @classmethod
    def read(cls, view: ClusterView, goal: Goal) -> _Input:
        rows = broker_rows(view.broker_ids, view.partitions.replicas).astype(np.int32)
        removed = np.array([b.id in set(goal.remove) for b in view.brokers], dtype=np.bool_)
        down = np.array([not b.is_active for b in view.brokers], dtype=np.bool_)
        fenced = down & ~removed
        changes = ~excluded_rows(view, goal)
        stay = count_in_row((rows >= 0) & np.append(fenced, False)[rows])
        factor = count_in_row(rows >= 0) if goal.factor is None else goal.factor
        wanted = np.where(changes, np.maximum(factor - stay, 0), 0).astype(np.int64)
        live = ~removed & ~fenced
        return cls(
            rows=rows,
            live=live,
            fenced=fenced,
            cordoned=live & np.array([b.cordoned for b in view.brokers], dtype=np.bool_),
            removed=removed,
            changes=changes,
            wanted=wanted,
            leader=_former_leaders(view, rows, down),
        )


def _former_leaders(view: ClusterView, rows: Int32Array, down: NDArray[np.bool_]) -> Int32Array:
    """Return who led: the first replica if not fenced, else who is listed, else the first that is not fenced."""
    leader = np.full(rows.shape[0], PAD, dtype=np.int32)
    able = (rows >= 0) & ~np.append(down, False)[rows]
    for column in range(rows.shape[1] - 1, -1, -1):
        leader = np.where(able[:, column], rows[:, column], leader)
    listed = view.partitions.leader
    if listed is not None and rows.shape[1]:
        place = broker_rows(view.broker_ids, listed)
        good = any_in_row(able & (rows == place[:, None])) & ~able[:, 0]
        leader = np.where(good, place, leader).astype(np.int32)
    return leader


def without_place(view: ClusterView, goal: Goal) -> int:
    """Return the first row of a view with the added brokers that the rules allow nowhere, -1 if there is none."""
    return first_without_place(_replica_question(view, goal, _Input.read(view, goal)))


def target_rows(view: ClusterView, rows: Int64Array, replicas: Int32Array) -> Int32Array:
    """Return all partitions' replicas after a plan of some `rows`, positions of brokers, int32[P, V], -1 pads."""
    before = broker_rows(view.broker_ids, view.partitions.replicas).astype(np.int32)
    width = max(before.shape[1], replicas.shape[1])
    after = np.full((before.shape[0], width), PAD, dtype=np.int32)
    after[:, : before.shape[1]] = before
    after[rows] = PAD
    after[rows, : replicas.shape[1]] = broker_rows(view.broker_ids, replicas)
    return after


def leaders_of(view: ClusterView, goal: Goal, target: Int32Array) -> tuple[Int32Array, Int32Array]:
    """Return who leads each partition before and after a plan, positions of brokers, int32[P] twice, -1 for nobody."""
    given = _Input.read(view, goal)
    return given.leader, _leading(given, target)


def tally(view: ClusterView, goal: Goal, target: Int32Array, certificate: Certificate) -> Tally:
    """Return what a plan changes and the least that it must; `view` has the added brokers, `target` positions."""
    given = _Input.read(view, goal)
    new = (target >= 0) & ~_among(target, given.rows)
    moved = int(new.sum())
    lost = 0
    lost_bound: int | None = 0
    moved_bound: int | None = 0
    moved_bytes = bytes_bound = together_bound = None
    if certificate.replicas is not None:
        question = _replica_question(view, goal, given)
        losable = (question.leader >= 0) & (question.wanted > 0)
        lost = int((losable & ~any_in_row(target == question.leader[:, None])).sum())
        weight = certificate.replicas.weight
        moved_bound, lost_bound = divmod(least_bytes(question, certificate.replicas), weight)
        if question.sizes is not None:
            bytes_bound = moved_bound
            together_bound = lost_bound if weight > 1 and not goal.is_banded else None
            moved_bound = lost_bound = None
            moved_bytes = _summed(question.sizes, count_in_row(new).astype(np.int64))
    chosen = _leading(given, target)
    asked = _leader_question(given, target)
    changed = int(((asked.leader >= 0) & (asked.wanted > 0) & (chosen != asked.leader)).sum())
    others = (given.leader >= 0) & (chosen != given.leader)
    led = np.bincount(given.leader[given.leader >= 0], minlength=given.live.size)
    over = np.where(given.live, np.maximum(led - certificate.leaders.high, 0), led)
    under = np.where(given.live, np.maximum(certificate.leaders.low - led, 0), 0)
    leaderless = int(((given.leader < 0) & (chosen >= 0)).sum())
    changed_bound = lower_bound(asked, certificate.leaders)
    least = max(int(over.sum()), int(under.sum()) - leaderless)
    if certificate.replicas is None:  # All plans choose among the same replicas, so the prices hold for each of them.
        least = max(least, changed_bound)
    return Tally(
        moved=moved,
        moved_bound=moved_bound,
        lost=lost,
        lost_bound=lost_bound,
        changed=changed,
        changed_bound=changed_bound,
        leader_changes=int(others.sum()),
        leader_changes_least=least,
        moved_bytes=moved_bytes,
        moved_bytes_bound=bytes_bound,
        moved_or_lost_bound=together_bound,
        moved_bytes_gap=_gap(moved_bytes, bytes_bound) if goal.is_banded else None,
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
    given = _Input.read(view, goal)
    found = _faults_of_rows(view, goal, given, target)
    for proof in (certificate.replicas, certificate.leaders):
        if proof is not None and proof.is_even != goal.is_even:
            found.append(f"the bounds are not those of goal {goal.kind}")
    if (certificate.replicas is None) != goal.only_leaders:
        found.append("a proof of replicas is missing, or is there though only leaders change")
    after = np.bincount(target[target >= 0], minlength=given.live.size).astype(np.int64)
    if certificate.replicas is not None:
        question = _replica_question(view, goal, given)
        if goal.is_banded:
            found += _faults_of_bytes(view, goal, question, certificate.replicas, target)
        else:
            before = np.bincount(given.rows[given.rows >= 0], minlength=given.live.size).astype(np.int64)
            found += _faults_of_loads(view, question, certificate.replicas, before, after, "replicas")
        found += _faults_of_topics(view, goal, question, certificate.replicas, target)
    asked = _leader_question(given, target)
    led = np.bincount(given.leader[given.leader >= 0], minlength=given.live.size).astype(np.int64)
    chosen = _leading(given, target)
    lead = np.bincount(chosen[chosen >= 0], minlength=given.live.size).astype(np.int64)
    found += _faults_of_loads(view, asked, certificate.leaders, led, lead, "leaders")
    counts = tally(view, goal, target, certificate)
    if counts.moved_bytes_gap is not None and counts.moved_bytes_gap < 0:
        found.append(f"{counts.moved_bytes} bytes move, fewer than the {counts.moved_bytes_bound} that any plan needs")
    for what, count, bound in counts.proven:
        if count != bound:
            found.append(f"{count} {what}, and the prices prove {bound}")
    return tuple(found)


def _replica_question(view: ClusterView, goal: Goal, given: _Input) -> Question:
    added = {number for number, _ in goal.add}
    receives = np.array([not goal.new_only_receives or b.id in added for b in view.brokers], dtype=np.bool_)
    pinned = given.rows[~given.changes]
    leader = np.where(given.changes & np.append(given.live, False)[given.leader], given.leader, PAD)
    base = np.bincount(pinned[pinned >= 0], minlength=given.live.size).astype(np.int64)
    sizes = copy_sizes(view) if goal.by == "bytes" else None
    if goal.is_banded and sizes is not None:
        base = bytes_of(np.where(given.changes[:, None], PAD, given.rows), sizes, given.live.size)
    return Question(
        rows=given.rows,
        wanted=given.wanted,
        leader=leader.astype(np.int32),
        live=given.live,
        stays=given.fenced,
        receives=receives & given.live & ~given.cordoned,
        cordoned=given.cordoned,
        rack=Question.rack_numbers(view),
        base=base,
        topic=view.partitions.topic_index,
        sizes=None if sizes is None else np.where(given.wanted > 0, sizes, 0),
        weights=np.where(given.wanted > 0, sizes, 0) if goal.is_banded and sizes is not None else None,
    )


def bytes_of(rows: Int32Array, sizes: Int64Array, count: int) -> Int64Array:
    """Return the bytes of each broker, int64[B], a replica counting as many as `sizes` int64[P] say."""
    loads = np.zeros(count + 1, dtype=np.int64)
    for column in range(rows.shape[1]):
        np.add.at(loads, rows[:, column], sizes)
    return loads[:count]


def byte_question(view: ClusterView, goal: Goal) -> Question:
    """Return what may be placed where, in bytes; `view` has the added brokers."""
    return _replica_question(view, goal, _Input.read(view, goal))


def _leader_question(given: _Input, target: Int32Array) -> Question:
    """Return the question of who leads: one live replica of each target, whatever its rack."""
    count = given.live.size
    able = (target >= 0) & np.append(given.live, False)[target]
    asked = given.changes & any_in_row(able)
    kept = any_in_row(able & (target == given.leader[:, None]))
    fixed = given.leader[~asked & (given.leader >= 0)]
    none = np.zeros(count, dtype=np.bool_)
    return Question(
        rows=np.where(able, target, PAD).astype(np.int32),
        wanted=asked.astype(np.int64),
        leader=np.where(asked & kept, given.leader, PAD).astype(np.int32),
        live=given.live,
        stays=none,
        receives=none,
        rack=np.arange(count, dtype=np.int64),
        base=np.bincount(fixed, minlength=count).astype(np.int64),
        topic=np.zeros(target.shape[0], dtype=np.int32),
    )


def _leading(given: _Input, target: Int32Array) -> Int32Array:
    """Return who leads after the plan: the first live replica, but who led stays where the first one is fenced."""
    able = (target >= 0) & np.append(given.live, False)[target]
    leader = np.full(target.shape[0], PAD, dtype=np.int32)
    for column in range(target.shape[1] - 1, -1, -1):
        leader = np.where(able[:, column], target[:, column], leader)
    if not target.shape[1]:
        return leader
    stays = ~able[:, 0] & any_in_row(able & (target == given.leader[:, None]))
    return np.where(stays | ~given.changes, given.leader, leader).astype(np.int32)


def _among(left: Int32Array, right: Int32Array) -> NDArray[np.bool_]:
    found = np.zeros(left.shape, dtype=np.bool_)
    for column in range(right.shape[1]):
        found |= left == right[:, column : column + 1]
    return found


def _faults_of_rows(view: ClusterView, goal: Goal, given: _Input, target: Int32Array) -> list[str]:
    """Return the rules that targets break, each with how many partitions break it and one of them."""
    held = target >= 0
    live, fenced = np.append(given.live, False)[target], np.append(given.fenced, False)[target]
    new = held & ~_among(target, given.rows)
    twice = np.zeros(target.shape[0], dtype=np.bool_)
    for first in range(target.shape[1]):
        for second in range(first + 1, target.shape[1]):
            twice |= held[:, first] & (target[:, first] == target[:, second])
    width = max(target.shape[1], given.rows.shape[1])
    same = (_widened(target, width) == _widened(given.rows, width)).all(axis=1)
    stays = (given.rows >= 0) & np.append(given.fenced, False)[given.rows]
    added = np.array([b.id in {number for number, _ in goal.add} for b in view.brokers] + [False], dtype=np.bool_)
    rules = [
        ("a broker holds two replicas", twice),
        ("an excluded topic changes", ~given.changes & ~same),
        ("a replica stands on a broker that is removed", given.changes & any_in_row(held & ~live & ~fenced)),
        ("a fenced broker receives or loses a replica", any_in_row(new & fenced)),
        ("a cordoned broker receives a replica", any_in_row(new & np.append(given.cordoned, False)[target])),
        ("a fenced broker loses its replica", given.changes & any_in_row(stays & ~_among(given.rows, target))),
        ("the number of replicas is not that asked", given.changes & ((held & live).sum(axis=1) != given.wanted)),
    ]
    if goal.only_leaders:
        rules.append(("a replica moves though only leaders may", any_in_row(new)))
    else:
        crowded = given.changes & _crowded(view, given, target)
        rules.append(("replicas stand on fewer racks than they can", crowded))
    if goal.new_only_receives:
        rules.append(("a broker that is not new receives a replica", any_in_row(new & ~added[target])))
    found = []
    for what, broken in rules:
        if broken.any():
            row = int(np.argmax(broken))
            table = view.partitions
            name = f"{view.topics[int(table.topic_index[row])].name}-{int(table.partition_ids[row])}"
            found.append(f"{what}: {counted(int(broken.sum()), 'partition')}, such as {name}")
    return found


def _widened(rows: Int32Array, width: int) -> Int32Array:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=PAD)


def _crowded(view: ClusterView, given: _Input, target: Int32Array) -> NDArray[np.bool_]:
    """Return which partitions stand on fewer racks than possible, or share a rack where none must; bool[P]."""
    rack = np.append(Question.rack_numbers(view), PAD)
    racks = np.where(target >= 0, rack[target], PAD)
    kept = np.where(np.append(given.fenced, False)[target] & (target >= 0), racks, PAD)
    kept_open = np.where(_is_open(rack, given)[kept], kept, PAD)
    open_racks = np.unique(rack[:-1][given.live]).size - distinct_in_row(kept_open)
    closed = np.setdiff1d(rack[:-1][given.cordoned], rack[:-1][given.live & ~given.cordoned])
    held = np.where(np.append(given.live | given.fenced, False)[given.rows], rack[given.rows], PAD)
    for number in closed.tolist():  # A rack of cordoned brokers is open only to partitions that are there already.
        open_racks = open_racks - ~any_in_row(held == number)
    fresh = np.where(_among(racks, kept) & (racks >= 0), PAD, racks)
    return np.asarray(distinct_in_row(fresh) < np.minimum(open_racks, given.wanted))


def _is_open(rack: Int32Array | Int64Array, given: _Input) -> NDArray[np.bool_]:
    """Return which racks have a live broker, bool[R + 1]; the last stands for none."""
    flags = np.zeros(int(rack.max(initial=0)) + 2, dtype=np.bool_)
    flags[rack[:-1][given.live]] = True
    return flags


def _faults_of_loads(
    view: ClusterView, question: Question, proof: Proof, before: Int64Array, after: Int64Array, what: str
) -> list[str]:
    found = [f"{what}: {fault}" for fault in faults_of_bounds(question, proof, before)]
    outside = question.live & ((after < proof.low) | (after > proof.high))
    for place in np.flatnonzero(outside)[:5].tolist():
        number = view.brokers[place].id
        found.append(
            f"{what}: broker {number} holds {int(after[place])}, outside {int(proof.low[place])} to "
            f"{int(proof.high[place])}"
        )
    if proof.is_even and proof.block.size:
        held = np.bincount(proof.block[question.live], after[question.live], proof.totals.size).astype(np.int64)
        if not np.array_equal(held, proof.totals):
            found.append(f"{what}: blocks of brokers hold {held.tolist()}, not {proof.totals.tolist()}")
    return found


def _faults_of_bytes(view: ClusterView, goal: Goal, question: Question, proof: Proof, target: Int32Array) -> list[str]:
    """Return what is wrong with the band, and the brokers whose bytes lie outside it."""
    sizes, count = copy_sizes(view), question.live.size
    before = bytes_of(_Input.read(view, goal).rows, sizes, count)
    found = faults_of_band(
        question, proof, shares=shares(view, goal), tolerance=goal.tolerance_millionths, before=before
    )
    after = bytes_of(target, sizes, count)
    outside = question.live & ((after < proof.low) | (after > proof.high))
    for place in np.flatnonzero(outside)[:5].tolist():
        found.append(
            f"broker {view.brokers[place].id} holds {int(after[place])} bytes, outside {int(proof.low[place])} to "
            f"{int(proof.high[place])}"
        )
    return [f"bytes: {fault}" for fault in found]


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
