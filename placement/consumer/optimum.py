"""Compute the optimum of any assignor: the most even sizes, and the most partitions that can stay at these sizes.

All members with the same subscriptions: N partitions, C members; N mod C members have N div C + 1. Of those who held
more than N div C, at most N mod C can keep one more than that.

Otherwise partitions are units of their topics, and a table says how many of each topic each member has. Sizes are
the most even when no chain of members, each giving a unit of a topic to the next, leads from one to another with at
least two fewer; then the sum of squares is least, and so is every other convex measure, the greatest size included.
From such a table, units go round in circles as long as that lets more stay: a circle may go through two members whose
sizes differ by one, which then trade sizes. No circle left, no table with these sizes lets more stay. Giving a
unit that the member held costs one, getting one that it held wins one, and all else is free; the best gain to each
member is improved step by step (Bellman and Ford) until the steps that led to it close a circle.

Source: Harvey, Ladner, Lovász, Tamir: Semi-matchings for bipartite graphs and load balancing (2006); cycle cancelling
for least cost is Klein's (1967). Left out: racks.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array
from placement.consumer.group import Group
from placement.consumer.ragged import Ragged
from placement.consumer.sticky.claims import assigned_topics
from placement.consumer.subscribers import same_sets

BoolTable = NDArray[np.bool_]

TABLE_SIZE_MAX: Final = 4_000_000  # Members x topics; some seconds and 100 MB at most.

FORBIDDEN: Final = -(1 << 40)  # A gain so low that no circle goes there.
TRADE: Final = -1  # Instead of a topic: two members trade sizes.


@attrs.frozen(eq=False)
class Optimum:
    """Hold the most even sizes, int64[M] ascending, and how many partitions can stay at sizes that even."""

    sizes: Int64Array
    kept_count: int


def optimum_of(group: Group) -> Optimum | None:
    """Return the optimum over all assignable partitions, and the claims that only one member makes.

    None for groups of different subscriptions so large that the tables would pass `TABLE_SIZE_MAX`.
    """
    if same_sets(group):
        claims = sole_claims(group)
        held_sizes = np.bincount(claims.rows, minlength=len(group.members))
        return _of_equals(held_sizes, int(group.partition_counts[assigned_topics(group)].sum()))
    if len(group.members) * len(group.topics) > TABLE_SIZE_MAX:
        return None
    held = held_table(group)
    may_hold = np.zeros(held.shape, np.bool_)
    may_hold[group.subscribed.rows, group.subscribed.values] = True
    may_hold &= group.partition_counts > 0
    table = _filled(held, may_hold, np.maximum(group.partition_counts, 0).astype(np.int64))
    level(table, may_hold)
    keep_more(table, held, may_hold)
    return Optimum(np.sort(table.sum(axis=1)), int(np.minimum(table, held).sum()))


def _of_equals(held: Int64Array, partition_count: int) -> Optimum:
    sizes = np.full(len(held), partition_count // max(1, len(held)), np.int64)
    over = partition_count - int(sizes.sum())
    kept = int(np.minimum(held, sizes).sum()) + min(over, int((held > sizes).sum()))
    sizes[len(sizes) - over :] += 1
    return Optimum(sizes, kept)


def sole_claims(group: Group) -> Ragged:
    """Return each member's claimed and subscribed partitions without a second claimant."""
    codes = group.owned.rows.astype(np.int64) * len(group.topics) + group.partition_topics[group.owned.values]
    subscribed = group.subscribed.rows.astype(np.int64) * len(group.topics) + group.subscribed.values
    alone = np.bincount(group.owned.values, minlength=1)[group.owned.values] == 1
    return group.owned.where(alone & (group.owned.values < group.partition_count) & np.isin(codes, subscribed))


def held_table(group: Group) -> Int64Array:
    """Return int64[M, T]: how many partitions of each topic each member alone claims."""
    claims = sole_claims(group)
    table = np.zeros((len(group.members), len(group.topics)), np.int64)
    np.add.at(table, (claims.rows, group.partition_topics[claims.values]), 1)
    return table


def _filled(held: Int64Array, may_hold: BoolTable, counts: Int64Array) -> Int64Array:
    """Return the held table plus the free partitions of each topic, each given to the least loaded allowed member."""
    table, sizes = held.copy(), held.sum(axis=1)
    for topic in np.flatnonzero(may_hold.any(axis=0)).tolist():
        members = np.flatnonzero(may_hold[:, topic])
        for _ in range(int(counts[topic] - table[:, topic].sum())):
            receiver = members[sizes[members].argmin()]
            table[receiver, topic] += 1
            sizes[receiver] += 1
    return table


def level(table: Int64Array, may_hold: BoolTable) -> None:
    """Move units of `table` int64[M, T] along chains until sizes are as even as `may_hold` bool[M, T] allows."""
    settled = np.zeros(len(table), np.bool_)
    while not settled.all():
        sizes = table.sum(axis=1)
        giver = int(np.where(settled, -1, sizes).argmax())
        chain = _chain_to_least(table, may_hold, giver)
        if chain is None:
            # Nothing reachable has two fewer, and later moves only bring sizes closer: this member stays as it is.
            settled[giver] = True
            continue
        for source, topic, target in chain:
            table[source, topic] -= 1
            table[target, topic] += 1


def _chain_to_least(table: Int64Array, may_hold: BoolTable, giver: int) -> list[tuple[int, int, int]] | None:
    """Return moves (from, topic, to) to the least loaded reachable member if it has at least two fewer; else none."""
    came: dict[int, tuple[int, int]] = {giver: (giver, -1)}
    topics_seen = np.zeros(table.shape[1], np.bool_)
    queue = [giver]
    for member in queue:
        for topic in np.flatnonzero((table[member] > 0) & ~topics_seen).tolist():
            # A topic's subscribers are reached all at once, so each topic is followed once: the search is linear.
            topics_seen[topic] = True
            for target in np.flatnonzero(may_hold[:, topic]).tolist():
                if target not in came:
                    came[target] = (member, topic)
                    queue.append(target)
    sizes = table.sum(axis=1)
    target = min(came, key=lambda member: (sizes[member], member))
    if sizes[target] > sizes[giver] - 2:
        return None
    chain = []
    while target != giver:
        source, topic = came[target]
        chain.append((source, topic, target))
        target = source
    return chain


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
