"""Keep more partitions with their former members while sizes stay as even as they are.

What it decides: which units of topics go round in circles, each member giving one and getting one, until no circle
lets more of what was held stay. `placement.consumer.optimum` says why that is then the most.

How:
Giving a unit that the member held costs one, getting one that it held wins one, all else is free. A member may also get
without giving, when another with one more gives without getting: the two trade sizes. The best circle-free gain to
each member is improved step by step (Bellman and Ford); when the steps that led to it close a circle, that one wins.

Cost: (members + topics) x members x topics for each circle.

Example: a holds 1 of t0 and b 1 of t1, but the table has them the other way round: the circle a-t1-b-t0-a wins two.

Source: Klein (1967), cycle cancelling.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array

FORBIDDEN = -(1 << 40)
"""A gain so low that no circle goes there."""
TRADE = -1
"""Instead of a topic: two members trade sizes."""


def keep_more(table: Int64Array, held: Int64Array, may_hold: NDArray[np.bool_]) -> None:
    """Change `table` int64[M, T] until no more of `held` int64[M, T] can stay with sizes as even."""
    while (circle := winning_circle(table, held, may_hold)) is not None:
        before = int(np.minimum(table, held).sum())
        for giver, topic, getter in circle:
            if topic != TRADE:
                table[giver, topic] -= 1
                table[getter, topic] += 1
        assert int(np.minimum(table, held).sum()) > before, "a circle that does not win was applied"


def winning_circle(
    table: Int64Array, held: Int64Array, may_hold: NDArray[np.bool_]
) -> list[tuple[int, int, int]] | None:
    """Return the steps (giver, topic or TRADE, getter) of a circle that keeps more; None if there is none."""
    member_count = len(table)
    giving = np.where(table > 0, np.where(table <= held, -1, 0), FORBIDDEN)
    getting = np.where(may_hold, np.where(table < held, 1, 0), FORBIDDEN)
    same_size = _lighter_by_one(table.sum(axis=1))
    gains = np.zeros(member_count, np.int64)
    parents, topics = np.arange(member_count), np.full(member_count, TRADE)
    rooted = np.ones(member_count, np.bool_)
    for _ in range(member_count + table.shape[1] + 1):
        to_topic = gains[:, None] + giving
        givers = to_topic.argmax(axis=0)
        to_member = to_topic.max(axis=0)[None, :] + getting
        chosen = to_member.argmax(axis=1)
        offered, sources, ways = to_member.max(axis=1), givers[chosen], chosen
        for lighter, heavier in same_size:
            source = lighter[gains[lighter].argmax()]
            better = heavier[gains[source] > offered[heavier]]
            offered[better], sources[better], ways[better] = gains[source], source, TRADE
        improved = offered > gains
        if not improved.any():
            return None
        gains = np.where(improved, offered, gains)
        parents, topics = np.where(improved, sources, parents), np.where(improved, ways, topics)
        rooted &= ~improved
        circle = _circle_of(parents, rooted)
        if circle:
            return [(int(parents[member]), int(topics[member]), member) for member in circle]
    raise AssertionError("gains grow for ever without a circle")


def _lighter_by_one(sizes: Int64Array) -> list[tuple[Int64Array, Int64Array]]:
    """Return the pairs of members (a, b) where b has one partition more than a."""
    by_size = {size: np.flatnonzero(sizes == size) for size in np.unique(sizes).tolist()}
    return [(members, by_size[size + 1]) for size, members in by_size.items() if size + 1 in by_size]


def _circle_of(parents: Int64Array, rooted: NDArray[np.bool_]) -> list[int]:
    """Return the members of a cycle in `parents`, or none; a `rooted` member has no parent."""
    seen = np.where(rooted, -1, 0).tolist()
    up = parents.tolist()
    for start in range(len(up)):
        member = start
        while seen[member] == 0:
            seen[member] = start + 1
            member = up[member]
        if seen[member] == start + 1:
            circle = [member]
            while up[circle[-1]] != member:
                circle.append(up[circle[-1]])
            return circle
    return []
