"""Turn a view and a goal into problems of exchanges: one for replicas, one for leaders.

What it decides: the groups of brokers that the rack rule speaks of, and the classes of partitions with equal rules.

Constraints, as in placement/balance/reachable.py: a partition stands on as many racks as it can; a broker without a
rack is a rack of its own; without any rack there is no rule. Replicas on fenced brokers stay, and their racks are
barred to the partition's other replicas; a removed broker bars nothing. Replicas of excluded topics stay and count.
A broker that is down in any other way (broker/liveness.py) is as a fenced one. A cordoned broker receives nothing,
though released Kafka would let a reassignment do so; it keeps what it has or gives it away, and leads. A rack whose
live brokers are all cordoned is barred to the partitions that have no replica there.

How: with f replicas for a open groups, f <= a: at most one in an open group, none in a barred one; f > a: at least one
in every open group. Groups of one broker each, which no partition bars, are one group where every f <= a: no broker
holds a partition twice anyway.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from broker.cluster import PAD, ClusterView, Int32Array, Int64Array
from broker.row_flags import any_in_row
from placement.balance.loads import racks_by_name
from placement.balance.reachable import Groups
from placement.planning.given import Given, leader_question
from placement.planning.goal import Goal
from placement.planning.problem import Problem

PINNED: Final = -1


def replica_problem(view: ClusterView, goal: Goal, given: Given) -> Problem:
    """Return the problem of placing the replicas that may move."""
    groups = Groups.make(racks_by_name(view)[1], ~given.live)
    barred, kind_of_row = _barred(given, groups, _closed(given, groups) if view.racks else None)
    key = kind_of_row * (int(given.wanted.max(initial=0)) + 1) + given.wanted
    key = np.where(given.changes, key, -1)
    keys, kind = _numbered(key)
    factor = keys % (int(given.wanted.max(initial=0)) + 1)
    group, must, room = _rules(groups, factor, barred[keys // (int(given.wanted.max(initial=0)) + 1)])
    pinned = given.rows[~given.changes]
    return Problem(
        before=np.where(given.stays, PAD, given.rows).astype(np.int32),
        kind=kind,
        leader=np.where(given.changes, given.leader, PAD).astype(np.int32),
        factor=factor,
        must=must,
        room=room,
        group=group,
        receives=given.receives(view, goal),
        base=np.bincount(pinned[pinned >= 0], minlength=group.size).astype(np.int64),
        topic=np.zeros(kind.size, dtype=np.int32),
    )


def leader_problem(given: Given, now: Int32Array) -> Problem:
    """Return the problem of choosing leaders among the replicas `now` int32[P, V], positions, -1 pads anywhere."""
    asked, count = leader_question(given, now), given.live.size
    other: dict[str, Any] = {
        "kind": np.where(asked.wanted > 0, 0, PINNED).astype(np.int32),
        "leader": asked.leader,
        "factor": np.ones(1, dtype=np.int64),
        "must": np.zeros((1, 1), dtype=np.int64),
        "room": np.full((1, 1), count, dtype=np.int64),
        "receives": asked.receives,
        "base": asked.base,
    }
    return Problem.of_rows(asked.rows, group=np.where(given.live, 0, -1), **other)


def _closed(given: Given, groups: Groups) -> NDArray[np.bool_] | None:
    """Return the groups whose live brokers are all cordoned, bool[G]; None if there is none."""
    closed = np.bincount(groups.of[given.live & ~given.cordoned], minlength=groups.sizes.size) == 0
    return closed if closed.any() else None


def _barred(given: Given, groups: Groups, closed: NDArray[np.bool_] | None) -> tuple[NDArray[np.bool_], Int64Array]:
    """Return the distinct sets of barred groups, bool[S, G], and the set of each partition.

    The groups `closed` are barred to the partitions that hold nothing there.
    """
    group_count = groups.sizes.size
    barred_by = np.where(given.fenced, groups.barred_by, -1)
    special = given.stays & (np.append(barred_by, -1)[given.rows] >= 0)
    of = np.append(np.where(given.live, groups.of, group_count), group_count)
    if closed is not None:
        special |= np.append(closed, False)[of[given.rows]]
    rows = np.flatnonzero(any_in_row(special))
    flags = np.zeros((rows.size + 1, group_count + 1), dtype=np.bool_)  # The first set is that of all other rows.
    if closed is not None:
        flags[:, :group_count] = closed
        np.put_along_axis(flags[1:], of[given.rows[rows]], False, axis=1)
    if rows.size:
        by = np.where(given.stays[rows], barred_by[given.rows[rows]], -1)
        np.put_along_axis(flags[1:], np.where(by < 0, group_count, by), True, axis=1)
        flags[:, group_count] = False
    sets, place = np.unique(flags[:, :group_count], axis=0, return_inverse=True)
    of_row = np.full(given.rows.shape[0], place.ravel()[0], dtype=np.int64)
    of_row[rows] = place.ravel()[1:]
    return sets, of_row


def _numbered(key: Int64Array) -> tuple[Int64Array, Int32Array]:
    """Return the distinct keys of 0 or more, ascending, and the number of each row's key, -1 for a negative one."""
    flags = np.zeros(int(key.max(initial=0)) + 1, dtype=np.bool_)
    flags[key[key >= 0]] = True
    if not flags.any():
        flags[0] = True  # A problem has a class, even if no partition is in it.
    keys = np.flatnonzero(flags)
    number = np.cumsum(flags) - 1
    return keys, np.where(key >= 0, number[key], PINNED).astype(np.int32)


def _rules(groups: Groups, factor: Int64Array, barred: NDArray[np.bool_]) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the group of each broker, and `must` and `room` of each class."""
    is_open = ~barred
    wide = factor > is_open.sum(axis=1)
    must = (is_open & wide[:, None]).astype(np.int64)
    room = np.where(wide[:, None], groups.of.size, is_open.astype(np.int64))
    single = (groups.sizes == 1) & ~barred.any(axis=0)
    if wide.any() or np.count_nonzero(single) < 2:
        return groups.of, must, room
    number = np.where(single, 0, np.cumsum(~single))
    first = np.concatenate([np.flatnonzero(single)[:1], np.flatnonzero(~single)])
    together = room[:, first]
    together[:, 0] = groups.of.size
    return np.where(groups.of >= 0, number[groups.of], -1), must[:, first], together
