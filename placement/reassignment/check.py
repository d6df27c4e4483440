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

from broker.cluster import ClusterView, Int32Array, Int64Array
from broker.row_flags import any_in_row, count_in_row
from placement.reassignment.case_bound import least_bytes
from placement.reassignment.certificate import Proof, lower_bound
from placement.reassignment.check_input import Input, leader_question, leading, replica_question
from placement.reassignment.goal import Goal
from placement.reassignment.plan_faults import among, faults_of_bytes, faults_of_loads, faults_of_rows, faults_of_topics


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


def tally(view: ClusterView, goal: Goal, target: Int32Array, certificate: Certificate) -> Tally:
    """Return what a plan changes and the least that it must; `view` has the added brokers, `target` positions."""
    given = Input.read(view, goal)
    new = (target >= 0) & ~among(target, given.rows)
    moved = int(new.sum())
    lost = 0
    lost_bound: int | None = 0
    moved_bound: int | None = 0
    moved_bytes = bytes_bound = together_bound = None
    if certificate.replicas is not None:
        question = replica_question(view, goal, given)
        losable = (question.leader >= 0) & (question.wanted > 0)
        lost = int((losable & ~any_in_row(target == question.leader[:, None])).sum())
        weight = certificate.replicas.weight
        moved_bound, lost_bound = divmod(least_bytes(question, certificate.replicas), weight)
        if question.sizes is not None:
            bytes_bound = moved_bound
            together_bound = lost_bound if weight > 1 and not goal.is_banded else None
            moved_bound = lost_bound = None
            moved_bytes = _summed(question.sizes, count_in_row(new).astype(np.int64))
    chosen = leading(given, target)
    asked = leader_question(given, target)
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
    given = Input.read(view, goal)
    found = faults_of_rows(view, goal, given, target)
    for proof in (certificate.replicas, certificate.leaders):
        if proof is not None and proof.is_even != goal.is_even:
            found.append(f"the bounds are not those of goal {goal.kind}")
    if (certificate.replicas is None) != goal.only_leaders:
        found.append("a proof of replicas is missing, or is there though only leaders change")
    after = np.bincount(target[target >= 0], minlength=given.live.size).astype(np.int64)
    if certificate.replicas is not None:
        question = replica_question(view, goal, given)
        if goal.is_banded:
            found += faults_of_bytes(view, goal, question, certificate.replicas, target)
        else:
            before = np.bincount(given.rows[given.rows >= 0], minlength=given.live.size).astype(np.int64)
            found += faults_of_loads(view, question, certificate.replicas, before, after, "replicas")
        found += faults_of_topics(view, goal, question, certificate.replicas, target)
    asked = leader_question(given, target)
    led = np.bincount(given.leader[given.leader >= 0], minlength=given.live.size).astype(np.int64)
    chosen = leading(given, target)
    lead = np.bincount(chosen[chosen >= 0], minlength=given.live.size).astype(np.int64)
    found += faults_of_loads(view, asked, certificate.leaders, led, lead, "leaders")
    counts = tally(view, goal, target, certificate)
    if counts.moved_bytes_gap is not None and counts.moved_bytes_gap < 0:
        found.append(f"{counts.moved_bytes} bytes move, fewer than the {counts.moved_bytes_bound} that any plan needs")
    for what, count, bound in counts.proven:
        if count != bound:
            found.append(f"{count} {what}, and the prices prove {bound}")
    return tuple(found)
