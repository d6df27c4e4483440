"""Measures of a spread, from their definitions and by brute force: slow, and sharing nothing with the product."""

from __future__ import annotations

import itertools
import statistics
from collections import deque
from collections.abc import Iterator, Sequence
from fractions import Fraction

Rows = tuple[tuple[int, ...], ...]


def stdev(shares: Sequence[int]) -> float:
    """Population standard deviation, by the standard library, from exact fractions."""
    return float(statistics.pstdev([Fraction(share) for share in shares])) if shares else 0.0


def gini(shares: Sequence[int]) -> Fraction:
    """Mean absolute difference of all ordered pairs over twice the mean."""
    total = sum(shares)
    if not total:
        return Fraction(0)
    differences = sum(abs(one - other) for one in shares for other in shares)
    return Fraction(differences, 2 * len(shares) * total)


def spreads(total: int, group_count: int) -> Iterator[tuple[int, ...]]:
    """Every way to give `total` whole units to the groups, ascending: order does not matter to a measure."""
    for bars in itertools.combinations_with_replacement(range(total + 1), group_count - 1):
        shares = [end - start for start, end in itertools.pairwise((0, *bars, total))]
        if shares == sorted(shares):
            yield tuple(shares)


def least_moves(shares: Sequence[int]) -> int:
    """Breadth first over single moves of one unit until every share is the floor or ceiling of the mean."""
    total, count = sum(shares), len(shares)
    low, high = total // count, -(-total // count)
    seen, queue = {tuple(shares)}, deque([(tuple(shares), 0)])
    while queue:
        now, moves = queue.popleft()
        if all(low <= share <= high for share in now):
            return moves
        for source, target in itertools.permutations(range(count), 2):
            if now[source]:
                after = list(now)
                after[source] -= 1
                after[target] += 1
                if tuple(after) not in seen:
                    seen.add(tuple(after))
                    queue.append((tuple(after), moves + 1))
    raise AssertionError("floor and ceiling can always be reached")


def least_replica_moves(rows: Rows, broker_count: int) -> int:
    """Breadth first over moves of one replica to a broker that has none of its partition."""
    replicas = sum(map(len, rows))
    low, high = replicas // broker_count, -(-replicas // broker_count)
    start = tuple(tuple(sorted(row)) for row in rows)
    seen, queue = {start}, deque([(start, 0)])
    while queue:
        now, moves = queue.popleft()
        held = [sum(broker in row for row in now) for broker in range(broker_count)]
        if all(low <= count <= high for count in held):
            return moves
        for after in _one_move(now, broker_count):
            if after not in seen:
                seen.add(after)
                queue.append((after, moves + 1))
    raise AssertionError("floor and ceiling can always be reached")


def _one_move(rows: Rows, broker_count: int) -> Iterator[Rows]:
    for index, row in enumerate(rows):
        for source in row:
            for target in range(broker_count):
                if target not in row:
                    moved = tuple(sorted((set(row) - {source}) | {target}))
                    yield (*rows[:index], moved, *rows[index + 1 :])
