"""Check the invariants that every assignment must meet, and the bound on sizes of balanced ones.

Kafka relies on the first three: a partition read by two members is read twice, one read by nobody is not read, and a
member cannot read what it did not subscribe to.
"""

from __future__ import annotations

import attrs
import numpy as np

from placement.consumer.assignment import GroupAssignment
from placement.consumer.group import Group
from placement.consumer.sticky.claims import assigned_topics
from placement.consumer.sticky.racks import assigned_partitions
from placement.consumer.subscribers import same_sets


@attrs.frozen
class BrokenRule:
    """Describe an invariant that does not hold, with the first violation in words."""

    rule: str
    detail: str


def check_assignment(
    assignment: GroupAssignment, *, withheld: bool = False, balanced: bool = False
) -> list[BrokenRule]:
    """Return the broken invariants; none for a sound assignment.

    With `withheld`, partitions that some member claims to hold may be given to nobody. With `balanced`, sizes in a
    group of equal subscriptions must differ by one at most, and else nobody may have two more than another subscriber.
    """
    found = [_one_member(assignment), _existing(assignment), _subscribed(assignment), _every(assignment, withheld)]
    if balanced:
        found.append(_balanced(assignment))
    return [broken for broken in found if broken is not None]


def _one_member(assignment: GroupAssignment) -> BrokenRule | None:
    twice = np.flatnonzero(np.bincount(assignment.rows.values, minlength=1) > 1)
    if not len(twice):
        return None
    members = assignment.rows.rows[assignment.rows.values == twice[0]].tolist()
    names = " and ".join(assignment.group.members[member] for member in members)
    return BrokenRule("one-member", f"{assignment.group.name_of(int(twice[0]))} is given to {names}")


def _existing(assignment: GroupAssignment) -> BrokenRule | None:
    beyond = assignment.rows.values[assignment.rows.values >= assignment.group.partition_count]
    if not len(beyond):
        return None
    return BrokenRule("existing", f"{assignment.group.name_of(int(beyond[0]))} does not exist")


def _subscribed(assignment: GroupAssignment) -> BrokenRule | None:
    group = assignment.group
    codes = assignment.rows.rows.astype(np.int64) * len(group.topics) + group.partition_topics[assignment.rows.values]
    allowed = group.subscribed.rows.astype(np.int64) * len(group.topics) + group.subscribed.values
    strange = np.flatnonzero(~np.isin(codes, allowed))
    if not len(strange):
        return None
    place = int(strange[0])
    member, partition = group.members[assignment.rows.rows[place]], int(assignment.rows.values[place])
    return BrokenRule("subscribed", f"{group.name_of(partition)} is given to {member}, which does not subscribe to it")


def _every(assignment: GroupAssignment, withheld: bool) -> BrokenRule | None:
    group = assignment.group
    wanted = assigned_partitions(group, assigned_topics(group)) if group.members else np.empty(0, np.int32)
    missing = np.setdiff1d(wanted, assignment.rows.values)
    if withheld:
        missing = np.setdiff1d(missing, group.owned.values)
    return (
        BrokenRule("every-partition", f"{group.name_of(int(missing[0]))} is given to nobody") if len(missing) else None
    )


def _balanced(assignment: GroupAssignment) -> BrokenRule | None:
    group, sizes = assignment.group, assignment.rows.lengths
    if same_sets(group):
        uneven = len(sizes) > 0 and sizes.max() - sizes.min() > 1
        return BrokenRule("balanced", f"sizes go from {sizes.min()} to {sizes.max()}") if uneven else None
    subscribed = [set(row) for row in group.subscribed.lists()]
    for giver in np.argsort(-sizes, kind="stable").tolist():
        for partition in assignment.rows.row(giver).tolist():
            topic = int(group.partition_topics[partition])
            for getter, topics in enumerate(subscribed):
                if topic in topics and sizes[giver] > sizes[getter] + 1:
                    return _movable(group, partition, giver, getter)
    return None


def _movable(group: Group, partition: int, giver: int, getter: int) -> BrokenRule:
    names = f"{group.name_of(partition)} could go from {group.members[giver]} to {group.members[getter]}"
    return BrokenRule("balanced", f"{names}, which has at least two fewer")
