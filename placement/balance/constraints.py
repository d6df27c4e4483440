"""Define named constraints of a placement, once for validating, explaining and testing.

    registered-brokers  hard  every replica stands on a registered broker
    distinct-brokers    hard  the replicas of a partition stand on different brokers
    factor-met          hard  a partition has as many replicas as asked, or as its topic's widest one
    leader-unfenced     hard  the preferred leader is not fenced
    rack-spread         soft  a partition stands on as many racks as it can: min(its replicas, racks)

No correct placer ever breaks a hard one; Kafka's placers keep the soft one where they say so. A replica on a broker
without a rack neither fills a rack nor needs one. Source: Kafka AdminUtils 4.0 and StripedReplicaPlacer 4.3.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import BrokerView, Int32Array, Int64Array
from broker.row_flags import any_in_row, count_in_row, distinct_in_row
from placement.spec import Assignment

BrokerRows: TypeAlias = Sequence[BrokerView]


class RuleKind(enum.Enum):
    """State whether a correct placer can break the constraint."""

    HARD = "hard"
    """Never broken by a correct placer."""
    SOFT = "soft"
    """Kept by placers that promise it; a policy may choose otherwise."""


@attrs.frozen
class Violation:
    """Describe one subject that breaks a constraint, with the columns of the table of violations.

    `racks` stand in the order of `brokers`; an empty string where a broker's rack is unknown.
    """

    constraint: str
    topic: str | None
    partition: int | None
    brokers: tuple[int, ...]
    racks: tuple[str, ...]
    detail: str


Find: TypeAlias = Callable[[Assignment, BrokerRows], Int64Array]
Explain: TypeAlias = Callable[[Assignment, BrokerRows, int], Violation]


@attrs.frozen(eq=False)
class Violations:
    """Hold all subjects that break one constraint: `subjects`, int64[n], ascending; explanations are made on demand."""

    constraint: Constraint
    assignment: Assignment
    brokers: BrokerRows
    subjects: Int64Array

    @property
    def count(self) -> int:
        """Return how many partitions (or brokers, if the constraint is about brokers) break the constraint."""
        return int(self.subjects.size)

    def explain(self, limit: int = 100) -> tuple[Violation, ...]:
        """Return the first `limit` violations in words: partition, brokers and racks."""
        chosen = self.subjects[:limit].tolist()
        return tuple(self.constraint.explain(self.assignment, self.brokers, subject) for subject in chosen)


@attrs.frozen(eq=False)
class Constraint:
    """Define a named rule: `find` returns the violating subjects, and `explain` describes one of them."""

    name: str
    kind: RuleKind
    sentence: str
    find: Find
    explain: Explain

    def violations(self, assignment: Assignment, brokers: BrokerRows) -> Violations:
        """Return the violations of this constraint by `assignment` on `brokers`, which are in ascending order of id."""
        return Violations(self, assignment, brokers, self.find(assignment, brokers))


def check(
    assignment: Assignment, brokers: BrokerRows, constraints: Sequence[Constraint] | None = None
) -> tuple[Violations, ...]:
    """Return the violations of each broken constraint, in the order of `constraints` (default: `STANDARD`)."""
    chosen = STANDARD if constraints is None else constraints
    found = (constraint.violations(assignment, brokers) for constraint in chosen)
    return tuple(violations for violations in found if violations.count)


def explain_partition(name: str, assignment: Assignment, brokers: BrokerRows, row: int, detail: str) -> Violation:
    """Return the violation of partition `row` in words, with its brokers and their racks."""
    held = [number for number in assignment.replicas[row].tolist() if number >= 0]
    racks = {broker.id: broker.rack or "" for broker in brokers}
    return Violation(
        constraint=name,
        topic=assignment.topics[assignment.topic_index[row]],
        partition=int(assignment.partition_ids[row]),
        brokers=tuple(held),
        racks=tuple(racks.get(number, "") for number in held),
        detail=detail,
    )


def _partition_rule(
    name: str,
    kind: RuleKind,
    sentence: str,
    broken: Callable[[Assignment, BrokerRows], NDArray[np.bool_]],
    detail: Callable[[Assignment, BrokerRows, int], str],
) -> Constraint:
    def find(assignment: Assignment, brokers: BrokerRows) -> Int64Array:
        return np.flatnonzero(broken(assignment, brokers)).astype(np.int64, copy=False)

    def explain(assignment: Assignment, brokers: BrokerRows, row: int) -> Violation:
        return explain_partition(name, assignment, brokers, row, detail(assignment, brokers, row))

    return Constraint(name, kind, sentence, find, explain)


def _row(assignment: Assignment, row: int) -> list[int]:
    return [number for number in assignment.replicas[row].tolist() if number >= 0]


def _listed(numbers: Sequence[int]) -> str:
    return ("broker " if len(numbers) == 1 else "brokers ") + ", ".join(map(str, numbers))


def _unregistered(assignment: Assignment, brokers: BrokerRows) -> NDArray[np.bool_]:
    replicas = assignment.replicas
    # Any negative id but the pad would be a policy's mistake, not a missing replica.
    known = np.array([broker.id for broker in brokers], dtype=np.int32)
    return any_in_row(~np.isin(replicas, known) & (replicas != -1))


def _unregistered_detail(assignment: Assignment, brokers: BrokerRows, row: int) -> str:
    known = {broker.id for broker in brokers} | {-1}
    strange = sorted({number for number in assignment.replicas[row].tolist() if number not in known})
    return f"{_listed(strange)} {'is' if len(strange) == 1 else 'are'} not registered"


REGISTERED_BROKERS: Final = _partition_rule(
    "registered-brokers",
    RuleKind.HARD,
    "Every replica stands on a registered broker.",
    _unregistered,
    _unregistered_detail,
)


def _meeting(assignment: Assignment, _: BrokerRows) -> NDArray[np.bool_]:
    replicas = assignment.replicas
    return np.asarray(distinct_in_row(replicas) < count_in_row(replicas >= 0))


def _meeting_detail(assignment: Assignment, _: BrokerRows, row: int) -> str:
    doubled = sorted(number for number, count in Counter(_row(assignment, row)).items() if count > 1)
    return f"{_listed(doubled)} {'holds' if len(doubled) == 1 else 'hold'} more than one replica"


DISTINCT_BROKERS: Final = _partition_rule(
    "distinct-brokers",
    RuleKind.HARD,
    "The replicas of a partition stand on different brokers.",
    _meeting,
    _meeting_detail,
)


def factor_met(factor: int | None = None) -> Constraint:
    """Return the constraint that each partition has `factor` replicas; None means the largest factor of its topic."""

    def asked(assignment: Assignment) -> Int64Array:
        counts = count_in_row(assignment.replicas >= 0).astype(np.int64)
        if factor is not None:
            return np.full(counts.size, factor, dtype=np.int64)
        widest = np.zeros(len(assignment.topics), dtype=np.int64)
        np.maximum.at(widest, assignment.topic_index, counts)
        return widest[assignment.topic_index]

    def broken(assignment: Assignment, _: BrokerRows) -> NDArray[np.bool_]:
        counts = count_in_row(assignment.replicas >= 0)
        return np.asarray((counts != asked(assignment)) | (counts == 0))

    def detail(assignment: Assignment, _: BrokerRows, row: int) -> str:
        count = len(_row(assignment, row))
        return f"{count} {'replica' if count == 1 else 'replicas'} where {int(asked(assignment)[row])} are asked for"

    return _partition_rule(
        "factor-met", RuleKind.HARD, "A partition has as many replicas as it should.", broken, detail
    )


FACTOR_MET: Final = factor_met()


def _fenced_leader(assignment: Assignment, brokers: BrokerRows) -> NDArray[np.bool_]:
    fenced = np.array([broker.id for broker in brokers if broker.fenced], dtype=np.int32)
    if not assignment.replicas.shape[1]:
        return np.zeros(assignment.partition_count, dtype=np.bool_)
    return np.isin(assignment.replicas[:, 0], fenced)


def _fenced_leader_detail(assignment: Assignment, _: BrokerRows, row: int) -> str:
    return f"the preferred leader, broker {int(assignment.replicas[row, 0])}, is fenced"


LEADER_UNFENCED: Final = _partition_rule(
    "leader-unfenced", RuleKind.HARD, "The preferred leader is not fenced.", _fenced_leader, _fenced_leader_detail
)


def _rack_numbers(brokers: BrokerRows) -> tuple[Int32Array, Int32Array, int]:
    """Return (ids of brokers with a rack, ascending; each one's rack number; number of racks)."""
    racked = sorted((broker.id, broker.rack) for broker in brokers if broker.rack is not None)
    number = {rack: index for index, rack in enumerate(sorted({rack for _, rack in racked}))}
    ids = np.array([broker_id for broker_id, _ in racked], dtype=np.int32)
    return ids, np.array([number[rack] for _, rack in racked], dtype=np.int32), len(number)


def _racks_had_and_needed(
    assignment: Assignment, brokers: BrokerRows, possible: Int64Array | None = None
) -> tuple[Int64Array, Int64Array]:
    ids, numbers, rack_count = _rack_numbers(brokers)
    replicas = assignment.replicas
    if not rack_count or not replicas.size:
        nothing = np.zeros(replicas.shape[0], dtype=np.int64)
        return nothing, nothing
    places = np.minimum(np.searchsorted(ids, replicas), ids.size - 1)
    racks = np.where(ids[places] == replicas, numbers[places], -1)
    return racks_had_and_needed(racks, rack_count if possible is None else possible)


def racks_had_and_needed(racks: Int32Array | Int64Array, rack_count: int | Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return on how many racks each partition is and could be, from the racks of its replicas, -1 for none."""
    needed = np.minimum(count_in_row(racks >= 0), rack_count)
    return distinct_in_row(racks), needed.astype(np.int64)


def _crowded_detail(assignment: Assignment, brokers: BrokerRows, row: int) -> str:
    one = attrs.evolve(
        assignment,
        topic_index=assignment.topic_index[row : row + 1],
        partition_ids=assignment.partition_ids[row : row + 1],
        replicas=assignment.replicas[row : row + 1],
    )
    had, needed = _racks_had_and_needed(one, brokers)
    return f"on {int(had[0])} {'rack' if had[0] == 1 else 'racks'} where {int(needed[0])} are possible"


def rack_spread(possible: Int64Array | None = None) -> Constraint:
    """Return the constraint on racks; `possible` are the racks that each partition can use, None for all of them."""

    def crowded(assignment: Assignment, brokers: BrokerRows) -> NDArray[np.bool_]:
        had, needed = _racks_had_and_needed(assignment, brokers, possible)
        return np.asarray(had < needed)

    return _partition_rule(
        "rack-spread",
        RuleKind.SOFT,
        "A partition stands on as many racks as it can: the smaller of its replicas and the racks.",
        crowded,
        _crowded_detail,
    )


RACK_SPREAD: Final = rack_spread()


HARD: Final = (REGISTERED_BROKERS, DISTINCT_BROKERS, FACTOR_MET, LEADER_UNFENCED)
"""What no correct placer ever breaks."""

STANDARD: Final = (*HARD, RACK_SPREAD)
"""What `check` looks at by default."""
