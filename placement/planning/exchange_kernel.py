"""Exchange replicas between brokers along cheapest paths until every broker's load lies within its bounds, compiled.

What it decides: which replicas a plan of least cost moves; exchange.py states the problem and why
the answer is exact.

The graph. Its nodes are the brokers (with a spread per topic: the pairs of topic and broker, below the brokers), one
root for each block of brokers whose total is given, and one node `missing` for replicas that stand nowhere yet. A
partition that holds broker a and can hold b instead is an arc from a to b; one with a missing replica is an arc from
`missing`. An arc to a parent carries what the node holds, within bounds. So a node's residual arcs are those of the
minimum-cost flow with the partitions contracted away: a path enters a partition at one held broker and leaves it at
one free broker, thus single exchanges suffice.

Costs come in two levels. The first counts new replicas: an exchange costs new(b) - new(a), where new(x) is 1 if x did
not hold the partition before. The second counts lost leaders: 1 if a led the partition, -1 if b did. The second level
is solved within the tight arcs of the first, whose prices then stay.

How: prices are shortest distances, so that no arc costs less than nothing after prices. `search` finds the levels of
all nodes over arcs that cost nothing; `push` sends units along arcs from one level to the next, each node with a
pointer to the arc tried last; where `search` reaches no node that lacks units, the caller raises the prices of those
not reached by one. Every replica of a broker is looked at once in a search and once in a push.

Any broker of a group is as good as the next for a partition that holds none of it, so brokers stand in buckets of
equal topic, level, price and group; of a bucket at most the partition's own brokers are passed over.

Example: broker 0 holds three partitions of factor 1 and broker 1 none; with bounds 1..2 one unit is pushed.

Left out: bytes as costs, which no bucket can hold.

Source: ours. The phases are those of the primal-dual method (Ford & Fulkerson) with Dinic's levels.
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from placement.planning.exchange_graph import Buckets, Holdings, Search, Shape, State, Workspace

DEAD = -2
UP = -1
DOWN = -2


def slot_of(matrix: Int32Array, row: int, broker: int) -> int:
    """Return the column of `broker` in a row, -1 if it is not there."""
    for column in range(matrix.shape[1]):
        if matrix[row, column] == broker:
            return column
    return -1


def admits(shape: Shape, now: Int32Array, row: int, leaving: int, group: int) -> bool:
    """Return whether a replica in `group` may take the place of that in column `leaving`, or of a missing one (-1)."""
    kind = shape.kind[row]
    held = size = 0
    for column in range(now.shape[1]):
        other = now[row, column]
        if other < 0:
            break
        if column == leaving:
            continue
        size += 1
        if shape.group[other] == group:
            held += 1
    if held >= shape.room[kind, group] or size >= shape.factor[kind]:
        return False
    if shape.must_count[kind] == 0:
        return True
    spare = shape.factor[kind] - size - 1
    for one in range(shape.must.shape[1]):  # Every group that must have a replica still gets one.
        if shape.must[kind, one] == 0 or one == group:
            continue
        found = False
        for column in range(now.shape[1]):
            other = now[row, column]
            if other >= 0 and column != leaving and shape.group[other] == one:
                found = True
        if not found:
            spare -= 1
    return bool(spare >= 0)


def fill_buckets(shape: Shape, key: Int64Array, key_count: int, buckets: Buckets) -> None:
    """Sort the cells whose key is 0 or more into buckets; cells of brokers that receive nothing are in none."""
    broker_count = shape.group.size
    group_count = shape.room.shape[1]
    bucket_count = buckets.place.size // broker_count * key_count * group_count
    for where in range(bucket_count + 1):
        buckets.start[where] = 0
    for cell in range(buckets.place.size):
        broker = cell % broker_count
        if key[cell] >= 0 and shape.group[broker] >= 0 and shape.receives[broker]:
            where = (cell // broker_count * key_count + key[cell]) * group_count + shape.group[broker]
            buckets.start[where + 1] += 1
    for where in range(bucket_count):
        buckets.start[where + 1] += buckets.start[where]
    for where in range(bucket_count):
        buckets.end[where] = buckets.start[where]
    for cell in range(buckets.place.size):
        broker = cell % broker_count
        buckets.place[cell] = -1
        if key[cell] >= 0 and shape.group[broker] >= 0 and shape.receives[broker]:
            where = (cell // broker_count * key_count + key[cell]) * group_count + shape.group[broker]
            buckets.member[buckets.end[where]] = cell
            buckets.place[cell] = buckets.end[where]
            buckets.end[where] += 1


def take_out(shape: Shape, key: Int64Array, key_count: int, buckets: Buckets, cell: int) -> None:
    """Remove a cell from its bucket, if it is in one."""
    place = buckets.place[cell]
    if place < 0:
        return
    broker_count = shape.group.size
    where = (cell // broker_count * key_count + key[cell]) * shape.room.shape[1] + shape.group[cell % broker_count]
    buckets.end[where] -= 1
    last = buckets.member[buckets.end[where]]
    buckets.member[place] = last
    buckets.place[last] = place
    buckets.place[cell] = -1


def fresh(shape: Shape, now: Int32Array, row: int, leaving: int, key: int, key_count: int, buckets: Buckets) -> int:
    """Return a cell with `key` whose broker never held the partition and may now; -1 if there is none."""
    if not shape.fresh[shape.kind[row]]:
        return -1
    group_count = shape.room.shape[1]
    first = (np.int64(shape.topic[row]) * key_count + key) * group_count
    for group in range(group_count):
        start, end = buckets.start[first + group], buckets.end[first + group]
        if start == end or not admits(shape, now, row, leaving, group):
            continue
        for place in range(start, end):
            broker = buckets.member[place] % shape.group.size
            if slot_of(now, row, broker) >= 0 or slot_of(shape.before, row, broker) >= 0:
                continue
            if slot_of(shape.stays, row, broker) < 0:
                return int(buckets.member[place])
    return -1


def price_of(shape: Shape, state: State, row: int, node: int, leaving: int) -> tuple[int, int]:
    """Return the prices at which a former replica would be tight, that of a new one being one more at the first."""
    moves, leads = state.moves[node], state.leads[node]
    if leaving >= 0:
        broker = state.now[row, leaving]
        if slot_of(shape.before, row, broker) < 0:
            moves -= 1
        if broker == shape.leader[row]:
            leads += 1
    return moves, leads


def former(
    shape: Shape, state: State, row: int, leaving: int, moves: int, leads: int, level: Int64Array, wanted: int
) -> int:
    """Return a cell of `wanted` level whose broker held the partition before and may again; -1 if there is none."""
    base = np.int64(shape.topic[row]) * shape.group.size
    for column in range(shape.before.shape[1]):
        broker = shape.before[row, column]
        if broker < 0:
            continue
        cell = base + broker
        if level[cell] != wanted or state.moves[cell] != moves or shape.group[broker] < 0:
            continue
        if state.leads[cell] != leads - (1 if broker == shape.leader[row] else 0):
            continue
        if slot_of(state.now, row, broker) < 0 and admits(shape, state.now, row, leaving, shape.group[broker]):
            return int(cell)
    return -1


def key_at(search: Search, level: int, moves: int, leads: int) -> int:
    """Return the key of cells at `level` with these prices; -1 if there is none."""
    values = search.values
    moves -= values[0]
    leads -= values[2]
    if moves < 0 or moves >= values[1] or leads < 0 or leads >= values[3] or level >= values[5]:
        return -1
    return int(search.key_of[(level * values[1] + moves) * values[3] + leads])


def is_tight(state: State, here: int, there: int) -> bool:
    """Return whether an arc to or from a parent costs nothing after prices."""
    return bool(state.moves[here] == state.moves[there] and state.leads[here] == state.leads[there])


def reach_family(shape: Shape, state: State, node: int, level: Int64Array, queue: Int64Array, end: int) -> int:
    """Append a node's newly reachable parent and children to the queue; return the new end of the queue."""
    parent = shape.parent[node]
    if parent >= 0 and level[parent] == -1 and state.carried[node] < shape.high[node] and is_tight(state, node, parent):
        level[parent] = level[node] + 1
        queue[end] = parent
        end += 1
    for place in range(shape.first_child[node], shape.first_child[node + 1]):
        child = shape.child[place]
        if level[child] == -1 and state.carried[child] > shape.low[child] and is_tight(state, node, child):
            level[child] = level[node] + 1
            queue[end] = child
            end += 1
    return end


def search_levels(
    shape: Shape, state: State, held: Holdings, search: Search, buckets: Buckets, workspace: Workspace
) -> bool:
    """Compute the levels of all nodes reachable from a node with excess; return whether any of them lacks units.

    Keys are of prices alone; `left` counts the cells of each topic that are not reached.
    """
    level, key_count, queue, left = search.level, search.values[4], workspace.queue, workspace.left
    fill_buckets(shape, search.key, key_count, buckets)
    live = 0
    for broker in range(shape.group.size):
        live += 1 if shape.group[broker] >= 0 else 0
    for topic in range(left.size):
        left[topic] = live
    end = done = 0
    for node in range(level.size):
        level[node] = -1
        if state.excess[node] > 0:
            level[node] = 0
            queue[end] = node
            end += 1
            if node < buckets.place.size:
                left[node // shape.group.size] -= 1
                take_out(shape, search.key, key_count, buckets, node)
    lacking = False
    while done < end:
        node = queue[done]
        done += 1
        lacking = lacking or state.excess[node] < 0
        before = end
        end = reach_family(shape, state, node, level, queue, end)
        for place in range(before, end):
            if queue[place] < buckets.place.size:
                left[queue[place] // shape.group.size] -= 1
                take_out(shape, search.key, key_count, buckets, queue[place])
        for place in range(held.start[node], held.start[node + 1]):
            row = held.partition[place]
            if left[shape.topic[row]] == 0:
                continue
            leaving = -1
            if node < buckets.place.size:
                leaving = slot_of(state.now, row, node % shape.group.size)
            moves, leads = price_of(shape, state, row, node, leaving)
            key = key_at(search, 0, moves + 1, leads)
            while True:
                cell = former(shape, state, row, leaving, moves, leads, level, -1)
                if cell < 0 and key >= 0:
                    cell = fresh(shape, state.now, row, leaving, key, key_count, buckets)
                if cell < 0:
                    break
                level[cell] = level[node] + 1
                left[shape.topic[row]] -= 1
                take_out(shape, search.key, key_count, buckets, cell)
                queue[end] = cell
                end += 1
    return lacking


def next_arc(
    shape: Shape, state: State, held: Holdings, search: Search, buckets: Buckets, pointer: Int64Array, node: int
) -> tuple[int, int]:
    """Return the next node on the way from `node`, and the partition that leads there, UP or DOWN; -1 if none does."""
    level, wanted = search.level, search.level[node] + 1
    parent = shape.parent[node]
    if pointer[node] == 0:
        is_open = parent >= 0 and level[parent] == wanted and state.carried[node] < shape.high[node]
        if is_open and is_tight(state, node, parent):
            return parent, UP
        pointer[node] = 1
    child_count = shape.first_child[node + 1] - shape.first_child[node]
    while pointer[node] <= child_count:
        child = shape.child[shape.first_child[node] + pointer[node] - 1]
        if level[child] == wanted and state.carried[child] > shape.low[child] and is_tight(state, node, child):
            return child, DOWN
        pointer[node] += 1
    while True:
        place = held.start[node] + pointer[node] - 1 - child_count
        if place >= held.start[node + 1]:
            return -1, 0
        row = held.partition[place]
        leaving = -1
        if node < buckets.place.size:
            leaving = slot_of(state.now, row, node % shape.group.size)
        if leaving >= 0 or node >= buckets.place.size:
            moves, leads = price_of(shape, state, row, node, leaving)
            cell = former(shape, state, row, leaving, moves, leads, level, wanted)
            if cell < 0:
                key = key_at(search, wanted, moves + 1, leads)
                if key >= 0:
                    cell = fresh(shape, state.now, row, leaving, key, search.values[4], buckets)
            if cell >= 0:
                return cell, row
        pointer[node] += 1


def find_way(
    shape: Shape,
    state: State,
    held: Holdings,
    search: Search,
    buckets: Buckets,
    pointer: Int64Array,
    way: Int64Array,
    rows: Int64Array,
) -> int:
    """Extend way[0] to a node that lacks units; return the number of arcs, -1 if there is no such way."""
    depth = 0
    while True:
        node = way[depth]
        if state.excess[node] < 0:
            return depth
        there, row = next_arc(shape, state, held, search, buckets, pointer, node)
        if there >= 0:
            depth += 1
            way[depth] = there
            rows[depth] = row
            continue
        search.level[node] = DEAD
        if node < buckets.place.size:
            take_out(shape, search.key, search.values[4], buckets, node)
        if depth == 0:
            return -1
        depth -= 1


def send(shape: Shape, state: State, here: int, there: int, row: int, cell_count: int) -> bool:
    """Send one unit along an arc; return False where an earlier arc of the same way has closed it."""
    if row == UP:
        state.carried[here] += 1
        return True
    if row == DOWN:
        state.carried[there] -= 1
        return True
    broker = there % shape.group.size
    leaving = -1
    if here < cell_count:
        leaving = slot_of(state.now, row, here % shape.group.size)
        if leaving < 0:
            return False
    if slot_of(state.now, row, broker) >= 0 or not admits(shape, state.now, row, leaving, shape.group[broker]):
        return False
    column = leaving if leaving >= 0 else slot_of(state.now, row, -1)
    state.now[row, column] = broker
    return True


def push_units(
    shape: Shape,
    state: State,
    held: Holdings,
    search: Search,
    buckets: Buckets,
    workspace: Workspace,
) -> int:
    """Send units from nodes with an excess to nodes that lack some, from level to level; return how many were sent."""
    pointer, way, rows = workspace.queue, workspace.way, workspace.rows
    fill_buckets(shape, search.key, search.values[4], buckets)
    for node in range(pointer.size):
        pointer[node] = 0
    sent = 0
    for source in range(search.level.size):
        while state.excess[source] > 0 and search.level[source] == 0:
            way[0] = source
            length = find_way(shape, state, held, search, buckets, pointer, way, rows)
            if length < 0:
                break
            done = 0
            while done < length and send(shape, state, way[done], way[done + 1], rows[done + 1], buckets.place.size):
                done += 1
            state.excess[source] -= 1
            state.excess[way[done]] += 1
            sent += 1
    return sent


@compiled_with(slot_of, admits, allocates=False)
def keep_former(shape: Shape, now: Int32Array) -> None:
    """Fill `now` with as many former replicas as the rules allow, the leader first, then in their order."""
    for row in range(now.shape[0]):
        if shape.kind[row] < 0:
            continue
        size = 0
        for turn in range(-1, shape.before.shape[1]):
            broker = shape.leader[row] if turn < 0 else shape.before[row, turn]
            if broker < 0 or shape.group[broker] < 0 or size >= shape.factor[shape.kind[row]]:
                continue
            if slot_of(now, row, broker) < 0 and admits(shape, now, row, -1, shape.group[broker]):
                now[row, size] = broker
                size += 1


@compiled_with(slot_of, admits, allocates=False)
def take_back_leaders(shape: Shape, state: State) -> int:
    """Exchange a replica for the former leader wherever that is tight; return how many were taken back."""
    taken = 0
    for row in range(state.now.shape[0]):
        leader = shape.leader[row]
        if shape.kind[row] < 0 or leader < 0 or shape.group[leader] < 0 or slot_of(state.now, row, leader) >= 0:
            continue
        base = np.int64(shape.topic[row]) * shape.group.size
        for column in range(state.now.shape[1]):
            other = state.now[row, column]
            if other < 0:
                break
            new = 1 if slot_of(shape.before, row, other) < 0 else 0
            if state.moves[base + leader] != state.moves[base + other] - new:
                continue
            if admits(shape, state.now, row, column, shape.group[leader]):
                state.now[row, column] = leader
                taken += 1
                break
    return taken
