"""The most even load that the rack rule allows, by trying every placement: slow, with nothing of the product."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cache

import attrs


@attrs.frozen
class Case:
    """Brokers by rack (None for no rack), which are fenced or cordoned, and partitions as sets of brokers."""

    racks: tuple[str | None, ...]
    fenced: tuple[bool, ...]
    partitions: tuple[frozenset[int], ...]
    cordoned: frozenset[int] = frozenset()

    @property
    def live(self) -> list[int]:
        """Brokers that are not fenced."""
        return [broker for broker, fenced in enumerate(self.fenced) if not fenced]

    def places(self, broker: int) -> str:
        """Name of the rack; a broker without one is a rack of its own."""
        rack = self.racks[broker]
        return f"alone {broker}" if rack is None else f"rack {rack}"


def choices(case: Case, held: frozenset[int]) -> Iterator[tuple[int, ...]]:
    """Every set of live brokers that may hold the live replicas of a partition, what is on fenced ones staying."""
    kept = {case.places(broker) for broker in held if case.fenced[broker]}
    factor = sum(not case.fenced[broker] for broker in held)
    able = [broker for broker in case.live if broker in held or broker not in case.cordoned]
    sets = list(itertools.combinations(able, factor))

    def fresh(chosen: tuple[int, ...]) -> int:
        return len({case.places(broker) for broker in chosen} - kept)

    most = max(map(fresh, sets), default=0)
    yield from (chosen for chosen in sets if fresh(chosen) == most)


def best_replicas(case: Case) -> list[int]:
    """Loads of live brokers, ascending, with the least sum of squares over all placements."""
    return _best(case, [list(choices(case, held)) for held in case.partitions])


def best_leaders(case: Case) -> list[int]:
    """Leaders of live brokers, ascending, with the least sum of squares; replicas may be anywhere the rule allows."""
    leads = [sorted({broker for chosen in choices(case, held) for broker in chosen}) for held in case.partitions]
    return _best(case, [[(broker,) for broker in brokers] for brokers in leads if brokers])


def _best(case: Case, options: Sequence[Sequence[tuple[int, ...]]]) -> list[int]:
    loads = {(0,) * len(case.racks)}
    for chosen in options:
        loads = {tuple(n + (b in one) for b, n in enumerate(load)) for load in loads for one in chosen}
    found = [sorted(load[broker] for broker in case.live) for load in loads]
    best = min(found, key=lambda load: sum(n * n for n in load))
    for other in found:  # The optimum is majorised by every other.
        sums = zip(itertools.accumulate(best), itertools.accumulate(other), strict=True)
        assert all(most >= least for most, least in sums), (best, other)
    return best


@cache
def least_moves(case: Case, target: tuple[int, ...]) -> int:
    """Fewest replicas to move, in any order, until the rule is kept and the sorted loads are `target`."""
    states = {(0,) * len(case.racks): 0}
    for held in case.partitions:
        after: dict[tuple[int, ...], int] = {}
        for load, moved in states.items():
            for one in choices(case, held):
                key = tuple(n + (b in one) for b, n in enumerate(load))
                cost = moved + len(set(one) - held)
                after[key] = min(cost, after.get(key, cost))
        states = after
    return min(cost for load, cost in states.items() if sorted(load[b] for b in case.live) == list(target))


def least_leader_moves(case: Case) -> int:
    """Fewest partitions to be led by another broker until leaders are best; who led first is the least live broker."""
    states = {(0,) * len(case.racks): 0}
    for held in case.partitions:
        allowed = sorted({broker for chosen in choices(case, held) for broker in chosen})
        first = min((broker for broker in held if not case.fenced[broker]), default=None)
        after: dict[tuple[int, ...], int] = {}
        for load, moved in states.items() if allowed else ():
            for leader in allowed:
                key = tuple(n + (b == leader) for b, n in enumerate(load))
                after[key] = min(moved + (leader != first), after.get(key, len(case.partitions)))
        states = after or states
    best = best_leaders(case)
    return min(cost for load, cost in states.items() if sorted(load[b] for b in case.live) == best)
