"""Send units along the cheapest paths of exchanges where every partition has its own price of a new replica, compiled.

What it decides: which replicas a plan moves that copies the fewest bytes; least_bytes.py states the problem.

The graph is that of exchange_kernel.py without topics: brokers, a root for each block of brokers, and one node for
replicas that stand nowhere yet. A replica that is new on broker x costs `fresh` of its partition; a former leader that
is kept saves `lead`. So the arc from a to b costs the least of cost(b) - cost(a) over the partitions of a that may have
b instead.

How: successive shortest paths with prices (Dijkstra over the brokers, fewest arcs first among the cheapest). For a
broker that never held the partition the cost of an exchange depends on the partition and a alone, so each pair of a
broker and a group of brokers has one heap of partitions, whose first serves the whole group but the brokers that the
partition already knows; a partition's former brokers stand in heaps of their own, one for each pair of brokers. Heaps
hold what was true once: what no longer is, is dropped when it comes to the top. A broker's arcs are found anew only
after one of its partitions changed.

Example: broker 0 holds partitions of 5 and 3 bytes and broker 1 none: the path costs 3.

Left out: spread by topic, whose nodes are too many for a table of all pairs.

Source: Busacker & Gowen (1961) and Edmonds & Karp (1972) for the paths and prices; Sleator & Tarjan's skew heaps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from placement.reassignment.exchange_graph import Shape, State
from placement.reassignment.exchange_kernel import admits, slot_of

FAR = 1 << 61
"""Costs more than any path."""

DONE, FULL, STUCK = 0, 1, 2
_UP, _DOWN = -1, -2


class Costs(NamedTuple):
    """Hold what a new replica of each partition costs, `fresh` int64[P], and what keeping a former leader saves."""

    fresh: Int64Array
    lead: int


class Heaps(NamedTuple):
    """Hold heaps in one pool of M entries: `key`, int64[M], `row`, `left`, `right`, int32[M]; the free ones in a chain.

    `root` int32[H, G + B]: of each holder, the heap of each group, then that of each broker. Holder B is the node for
    replicas that stand nowhere. `free` int64[1] is the first free entry, -1 for none.
    """

    key: Int64Array
    row: Int32Array
    left: Int32Array
    right: Int32Array
    root: Int32Array
    free: Int64Array


class Arcs(NamedTuple):
    """Hold the cheapest arcs: `cost` int64[H, B], `row` int32[H, B] the partition; `stale` bool[H] must be found."""

    cost: Int64Array
    row: Int32Array
    stale: NDArray[np.bool_]


class Paths(NamedTuple):
    """Hold a search: `cost`, `arcs`, `before` (the node before) and `by` (a partition, UP or DOWN), int64[N]; `done`.

    `kept` int32[M] is room for entries taken off a heap, `open` int64[B] for brokers without an arc yet.
    """

    cost: Int64Array
    arcs: Int64Array
    before: Int64Array
    by: Int64Array
    done: NDArray[np.bool_]
    kept: Int32Array
    open: Int64Array


def cost_at(shape: Shape, costs: Costs, row: int, broker: int) -> int:
    """Return what a replica on `broker` costs."""
    if broker == shape.leader[row]:
        return -costs.lead
    if slot_of(shape.before, row, broker) >= 0:
        return 0
    return int(costs.fresh[row])


def meld(heaps: Heaps, first: int, second: int) -> int:
    """Return the root of two heaps made one."""
    if first < 0:
        return second
    if second < 0:
        return first
    key, row = heaps.key, heaps.row
    if key[second] < key[first] or (key[second] == key[first] and row[second] < row[first]):
        first, second = second, first
    root = here = first
    while True:
        other = heaps.right[here]
        heaps.right[here] = heaps.left[here]
        if other < 0:
            heaps.left[here] = second
            return root
        if key[second] < key[other] or (key[second] == key[other] and row[second] < row[other]):
            other, second = second, other
        heaps.left[here] = other
        here = other


def put(heaps: Heaps, holder: int, place: int, key: int, row: int) -> None:
    """Add an entry to a heap; there must be a free one."""
    entry = heaps.free[0]
    heaps.free[0] = heaps.left[entry]
    heaps.key[entry], heaps.row[entry] = key, row
    heaps.left[entry] = heaps.right[entry] = -1
    heaps.root[holder, place] = meld(heaps, heaps.root[holder, place], entry)


def drop(heaps: Heaps, entry: int) -> None:
    """Make an entry free."""
    heaps.left[entry] = heaps.free[0]
    heaps.free[0] = entry


def put_exchanges(shape: Shape, now: Int32Array, costs: Costs, heaps: Heaps, row: int) -> int:
    """Add every exchange of a partition to the heaps; return how many."""
    brokers, groups = shape.group.size, shape.room.shape[1]
    count = 0
    for column in range(now.shape[1]):
        here = now[row, column]
        leaving, holder, own = column, here, 0
        if here < 0:
            if column >= shape.factor[shape.kind[row]]:
                break
            leaving, holder = -1, brokers
        else:
            own = cost_at(shape, costs, row, here)
        for group in range(groups):
            if admits(shape, now, row, leaving, group):
                put(heaps, holder, group, costs.fresh[row] - own, row)
                count += 1
        for old in range(shape.before.shape[1]):
            broker = shape.before[row, old]
            if broker < 0 or shape.group[broker] < 0 or slot_of(now, row, broker) >= 0:
                continue
            if admits(shape, now, row, leaving, shape.group[broker]):
                put(heaps, holder, groups + broker, cost_at(shape, costs, row, broker) - own, row)
                count += 1
        if here < 0:
            break
    return count


def holds_true(shape: Shape, now: Int32Array, costs: Costs, heaps: Heaps, holder: int, place: int, entry: int) -> bool:
    """Return whether an entry of the heap at `place` of `holder` is still an exchange at that cost."""
    brokers, groups = shape.group.size, shape.room.shape[1]
    row = heaps.row[entry]
    leaving, own = -1, 0
    if holder < brokers:
        leaving = slot_of(now, row, holder)
        if leaving < 0:
            return False
        own = cost_at(shape, costs, row, holder)
    group, wanted = place, costs.fresh[row]
    if place >= groups:
        broker = place - groups
        if slot_of(now, row, broker) >= 0:
            return False
        group, wanted = shape.group[broker], cost_at(shape, costs, row, broker)
    return bool(heaps.key[entry] == wanted - own and admits(shape, now, row, leaving, group))


def find_arcs(shape: Shape, now: Int32Array, costs: Costs, heaps: Heaps, arcs: Arcs, paths: Paths, holder: int) -> None:
    """Find the cheapest arc from `holder` to every broker."""
    brokers, groups = shape.group.size, shape.room.shape[1]
    arcs.stale[holder] = False
    for broker in range(brokers):
        arcs.cost[holder, broker] = FAR
    for group in range(groups):
        count = kept = 0
        for broker in range(brokers):
            if shape.group[broker] == group and shape.receives[broker] and broker != holder:
                paths.open[count] = broker
                count += 1
        while count > 0 and heaps.root[holder, group] >= 0:
            entry = heaps.root[holder, group]
            heaps.root[holder, group] = meld(heaps, heaps.left[entry], heaps.right[entry])
            row = heaps.row[entry]
            twice = kept > 0 and heaps.row[paths.kept[kept - 1]] == row
            if twice or not holds_true(shape, now, costs, heaps, holder, group, entry):
                drop(heaps, entry)
                continue
            paths.kept[kept] = entry
            kept += 1
            left = 0
            for place in range(count):
                broker = paths.open[place]
                if slot_of(now, row, broker) >= 0 or slot_of(shape.before, row, broker) >= 0:
                    paths.open[left] = broker
                    left += 1
                else:
                    arcs.cost[holder, broker], arcs.row[holder, broker] = heaps.key[entry], row
            count = left
        for place in range(kept - 1, -1, -1):
            entry = paths.kept[place]
            heaps.left[entry] = heaps.right[entry] = -1
            heaps.root[holder, group] = meld(heaps, entry, heaps.root[holder, group])
    for broker in range(brokers):
        while heaps.root[holder, groups + broker] >= 0:
            entry = heaps.root[holder, groups + broker]
            if holds_true(shape, now, costs, heaps, holder, groups + broker, entry):
                if heaps.key[entry] < arcs.cost[holder, broker]:
                    arcs.cost[holder, broker], arcs.row[holder, broker] = heaps.key[entry], heaps.row[entry]
                break
            heaps.root[holder, groups + broker] = meld(heaps, heaps.left[entry], heaps.right[entry])
            drop(heaps, entry)


def relax(paths: Paths, here: int, there: int, cost: int, by: int) -> None:
    """Note a path to `there` over `here` if it is cheaper, or as cheap with fewer arcs."""
    if paths.done[there]:
        return
    total, arcs = paths.cost[here] + cost, paths.arcs[here] + 1
    if total < paths.cost[there] or (total == paths.cost[there] and arcs < paths.arcs[there]):
        paths.cost[there], paths.arcs[there], paths.before[there], paths.by[there] = total, arcs, here, by


def shortest(shape: Shape, state: State, costs: Costs, heaps: Heaps, arcs: Arcs, paths: Paths) -> int:
    """Return the node that lacks units and is cheapest to reach, and raise the prices; -1 if there is none."""
    brokers, nodes = shape.group.size, shape.parent.size
    price = state.moves
    for node in range(nodes):
        paths.cost[node] = 0 if state.excess[node] > 0 else FAR
        paths.arcs[node], paths.before[node], paths.done[node] = 0, -1, False
    found = -1
    while True:
        here = -1
        for node in range(nodes):
            if paths.done[node] or paths.cost[node] >= FAR:
                continue
            if (
                here < 0
                or paths.cost[node] < paths.cost[here]
                or (paths.cost[node] == paths.cost[here] and paths.arcs[node] < paths.arcs[here])
            ):
                here = node
        if here < 0:
            return -1
        paths.done[here] = True
        if state.excess[here] < 0:
            found = here
            break
        holder = brokers if here == nodes - 1 else here
        if here < brokers or here == nodes - 1:
            if arcs.stale[holder]:
                find_arcs(shape, state.now, costs, heaps, arcs, paths, holder)
            for there in range(brokers):
                if arcs.cost[holder, there] < FAR:
                    cost = arcs.cost[holder, there] + price[here] - price[there]
                    relax(paths, here, there, cost, arcs.row[holder, there])
        parent = shape.parent[here]
        if parent >= 0 and state.carried[here] < shape.high[here]:
            relax(paths, here, parent, price[here] - price[parent], _UP)
        for place in range(shape.first_child[here], shape.first_child[here + 1]):
            child = shape.child[place]
            if state.carried[child] > shape.low[child]:
                relax(paths, here, child, price[here] - price[child], _DOWN)
    least = paths.cost[found]
    for node in range(nodes):
        price[node] += min(paths.cost[node], least)
    return found


def exchange(shape: Shape, now: Int32Array, here: int, there: int, row: int) -> bool:
    """Put a replica of a partition on `there` instead of `here`; False where an earlier arc of the path forbids it."""
    leaving = slot_of(now, row, here) if here < shape.group.size else -1
    if here < shape.group.size and leaving < 0:
        return False
    if slot_of(now, row, there) >= 0 or not admits(shape, now, row, leaving, shape.group[there]):
        return False
    now[row, leaving if leaving >= 0 else slot_of(now, row, -1)] = there
    return True


def mark(shape: Shape, now: Int32Array, arcs: Arcs, row: int) -> None:
    """Note that the arcs of all who hold a partition must be found anew."""
    for column in range(now.shape[1]):
        if now[row, column] >= 0:
            arcs.stale[now[row, column]] = True
        elif column < shape.factor[shape.kind[row]]:
            arcs.stale[shape.group.size] = True


@compiled_with(slot_of, admits, cost_at, meld, put, put_exchanges, allocates=False)
def fill_heaps(shape: Shape, now: Int32Array, costs: Costs, heaps: Heaps, order: Int64Array) -> int:
    """Add the exchanges of the partitions in `order` to empty heaps, dearest first at best; -1 if there is no room."""
    most = now.shape[1] * (shape.room.shape[1] + shape.before.shape[1])
    left = heaps.key.size
    for place in range(order.size):
        if left < most:
            return -1
        left -= put_exchanges(shape, now, costs, heaps, order[place])
    return heaps.key.size - left


@compiled_with(
    slot_of,
    admits,
    cost_at,
    meld,
    put,
    drop,
    put_exchanges,
    holds_true,
    find_arcs,
    relax,
    shortest,
    exchange,
    mark,
    allocates=False,
)
def send_cheapest(shape: Shape, state: State, costs: Costs, heaps: Heaps, arcs: Arcs, paths: Paths, spare: int) -> int:
    """Send units until no node has too many (DONE), one cannot be sent (STUCK), or the heaps lack room (FULL).

    `spare` are the free entries of the heaps at least.
    """
    most = state.now.shape[1] * (shape.room.shape[1] + shape.before.shape[1])
    while True:
        waiting = False
        for node in range(state.excess.size):
            waiting = waiting or state.excess[node] > 0
        if not waiting:
            return DONE
        node = shortest(shape, state, costs, heaps, arcs, paths)
        if node < 0:
            return STUCK
        if spare < most * (paths.arcs[node] + 1):
            return FULL
        following, length = -1, 0
        while node >= 0:  # Turn the path round: `open` has no room for roots, so `before` itself is turned.
            back = paths.before[node]
            paths.before[node] = following
            following, node = node, back
            length += 1
        here = following
        state.excess[here] -= 1
        while paths.before[here] >= 0:
            there = paths.before[here]
            row = paths.by[there]
            if row == _UP:
                state.carried[here] += 1
            elif row == _DOWN:
                state.carried[there] -= 1
            else:
                mark(shape, state.now, arcs, row)
                if not exchange(shape, state.now, here, there, row):
                    break
                mark(shape, state.now, arcs, row)
                spare -= put_exchanges(shape, state.now, costs, heaps, row)
            here = there
        state.excess[here] += 1
