"""Turn a view and a goal into problems of exchanges: one for replicas, one for leaders.

A partition stands on as many racks as it can; a broker without a rack is a rack of its own; without any rack there is
no rule. With f replicas for a open groups, f <= a: at most one in an open group, none in a barred one; f > a: at least
one in every open group. Groups of one broker each, open to every partition, are one group where every f <= a.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from broker.cluster import PAD, ClusterView, Int32Array, Int64Array
from broker.row_flags import any_in_row, count_each
from placement.planning.given import Given, leader_question, replica_question
from placement.planning.goal import Goal
from placement.planning.problem import Problem

PINNED: Final = -1


def replica_problem(view: ClusterView, goal: Goal, given: Given) -> Problem:
    """Return the problem of placing the replicas that may move."""
    asked, most = replica_question(view, goal, given), int(given.wanted.max(initial=0)) + 1
    group_of_rack = np.zeros(int(asked.rack.max(initial=0)) + 2, dtype=np.int64)
    open_groups, set_of_row, group_count = np.ones((1, 1), dtype=np.bool_), np.zeros(given.fresh.size, np.int64), 1
    if view.racks:
        racks = np.unique(asked.rack[given.live])
        group_count = racks.size
        group_of_rack[:] = group_count
        group_of_rack[racks] = np.arange(group_count)
        open_groups, set_of_row = _open_sets(given, np.append(group_of_rack[asked.rack], group_count), group_count)
    key = (set_of_row * most + given.wanted) * 2 + given.fresh
    keys, kind = _numbered(np.where(given.changes, key, PINNED))
    factor = keys // 2 % most
    group = np.where(given.live, group_of_rack[asked.rack], -1)
    must = np.zeros((keys.size, 1), dtype=np.int64)
    room = np.full_like(must, group.size)
    if view.racks:
        group, must, room = _rules(group, group_count, factor, open_groups[keys // 2 // most])
    return Problem(
        before=np.where(given.own, given.rows, PAD).astype(np.int32),
        stays=np.where(given.stays, given.rows, PAD).astype(np.int32),
        kind=kind,
        leader=asked.leader,
        factor=factor,
        fresh=keys % 2 > 0,
        must=must,
        room=room,
        group=group,
        receives=given.receives,
        base=count_each(np.where(given.stays | ~given.changes[:, None], given.rows, PAD), given.live.size),
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


def _open_sets(given: Given, group_of: Int64Array, count: int) -> tuple[NDArray[np.bool_], Int64Array]:
    """Return the distinct sets of open groups, bool[S, G], and the set of each partition.

    `group_of` int64[B + 1] is the group of each broker's rack, `count` for a rack without one, and for padding.
    """
    every = np.zeros(count + 1, dtype=np.bool_)
    every[group_of[:-1][given.pool]] = True
    group = group_of[given.rows]
    stays = given.stays & (group < count)
    rows = np.flatnonzero(given.changes & (any_in_row(stays) | ~given.fresh))
    flags = np.tile(every, (rows.size + 1, 1))  # The first set is that of all other rows.
    few = ~given.fresh[rows]
    flags[1:][few] = False
    np.put_along_axis(flags[1:], np.where(given.own[rows] & few[:, None], group[rows], count), True, axis=1)
    np.put_along_axis(flags[1:], np.where(stays[rows], group[rows], count), False, axis=1)
    sets, place = np.unique(flags[:, :count], axis=0, return_inverse=True)
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


def _rules(
    group: Int64Array, count: int, factor: Int64Array, is_open: NDArray[np.bool_]
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the group of each broker, and `must` and `room` of each class, of which bool[C, G] groups are open."""
    wide = factor > is_open.sum(axis=1)
    must = (is_open & wide[:, None]).astype(np.int64)
    room = np.where(wide[:, None], group.size, is_open.astype(np.int64))
    single = (count_each(group, count) == 1) & is_open.all(axis=0)
    if wide.any() or np.count_nonzero(single) < 2:
        return group, must, room
    number = np.where(single, 0, np.cumsum(~single))
    first = np.concatenate([np.flatnonzero(single)[:1], np.flatnonzero(~single)])
    together = room[:, first]
    together[:, 0] = group.size
    return np.where(group >= 0, number[group], -1), must[:, first], together
