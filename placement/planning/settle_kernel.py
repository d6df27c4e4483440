"""Send units of an exchange graph until every broker's load lies within its bounds, phase after phase, compiled.

How: a phase finds the levels of all nodes over arcs that cost nothing. If a node that lacks units has one, units are
sent from level to level; else prices rise by one for the nodes of a block that the search did not reach, and for every
block above one that it did reach. Prices that have risen by more than they differ make every arc tight: a search that
still reaches the same nodes is stuck, and no unit can ever leave these.

Keys of cells are numbered as their prices are, and within a level when units are sent. The caller gives room for them,
and gives more when `settle` asks for it: it begins the phase again, as a search changes nothing.
"""

from __future__ import annotations

from broker.cluster import Int64Array
from broker.compiled import compiled_with
from placement.planning.exchange_graph import Buckets, Holdings, Search, Shape, State, Workspace, hold
from placement.planning.exchange_kernel import (
    admits,
    fill_buckets,
    find_way,
    former,
    fresh,
    is_tight,
    key_at,
    next_arc,
    price_of,
    push_units,
    reach_family,
    search_levels,
    send,
    slot_of,
    take_out,
)

SETTLED = 0
STUCK = 1
NO_ROOM = 2
NOTHING_SENT = 3
FAR = 1 << 62


def has_excess(state: State) -> bool:
    """Return whether a node has more units than it may have."""
    count = 0
    for node in range(state.excess.size):
        count += 1 if state.excess[node] > 0 else 0
    return count > 0


def find_prices(state: State, search: Search, by_level: bool) -> bool:
    """Fill `search.values` but for the number of keys; return whether there is room for the keys."""
    values, cells = search.values, search.key.size
    moves_max = values[0] = state.moves[0]
    leads_max = values[2] = state.leads[0]
    for cell in range(cells):
        values[0] = min(values[0], state.moves[cell])
        values[2] = min(values[2], state.leads[cell])
        moves_max = max(moves_max, state.moves[cell])
        leads_max = max(leads_max, state.leads[cell])
    values[1] = moves_max - values[0] + 1
    values[3] = leads_max - values[2] + 1
    values[5] = 1
    if by_level:
        for node in range(search.level.size):
            values[5] = max(values[5], search.level[node] + 1)
    return bool(values[1] * values[3] * values[5] <= search.key_of.size)


def number_keys(shape: Shape, state: State, search: Search, buckets: Buckets, by_level: bool) -> bool:
    """Number the distinct prices of cells, of each level by itself if `by_level`; return whether there is room."""
    values, key, key_of = search.values, search.key, search.key_of
    values[4] = 0
    if not find_prices(state, search, by_level):
        return False
    value_count = values[1] * values[3]
    for where in range(value_count * values[5]):
        key_of[where] = -1
    for cell in range(key.size):
        key[cell] = -1
        if not by_level or search.level[cell] >= 0:
            where = (state.moves[cell] - values[0]) * values[3] + state.leads[cell] - values[2]
            where += search.level[cell] * value_count if by_level else 0
            key[cell] = where
            key_of[where] = 0
    for where in range(value_count * values[5]):
        if key_of[where] == 0:
            key_of[where] = values[4]
            values[4] += 1
    for cell in range(key.size):
        if key[cell] >= 0:
            key[cell] = key_of[key[cell]]
    topic_count = key.size // shape.group.size
    return bool(topic_count * values[4] * shape.room.shape[1] <= buckets.end.size)


def find_rises(order: Int64Array, level: Int64Array, workspace: Workspace) -> int:
    """Fill `workspace.raised`, where a search is stuck; return how many nodes it reached."""
    for block in range(workspace.reached.size):
        workspace.reached[block] = False
    count = 0
    for node in range(level.size):
        if level[node] >= 0:
            workspace.reached[order[node]] = True
            count += 1
    below = 0
    for block in range(workspace.reached.size):
        workspace.below[block] = below
        below += 1 if workspace.reached[block] else 0
    for node in range(level.size):
        stays = workspace.reached[order[node]] and level[node] < 0
        workspace.raised[node] = workspace.below[order[node]] + (1 if stays else 0)
    return count


def rises_left(order: Int64Array, price: Int64Array, level: Int64Array, workspace: Workspace) -> int:
    """Return how often prices can rise before every arc out of the reached nodes must have become tight."""
    for block in range(workspace.reached.size):
        workspace.highest[block] = -FAR
        workspace.lowest[block] = FAR
    for node in range(level.size):
        block = order[node]
        if level[node] >= 0:
            workspace.highest[block] = max(workspace.highest[block], price[node])
        else:
            workspace.lowest[block] = min(workspace.lowest[block], price[node])
    most = 0
    for block in range(workspace.reached.size):
        if workspace.reached[block] and workspace.lowest[block] < FAR:
            most = max(most, workspace.highest[block] - workspace.lowest[block] + 2)
    return most


@compiled_with(
    hold,
    slot_of,
    admits,
    fill_buckets,
    take_out,
    fresh,
    price_of,
    former,
    key_at,
    is_tight,
    reach_family,
    search_levels,
    next_arc,
    find_way,
    send,
    push_units,
    has_excess,
    find_prices,
    number_keys,
    find_rises,
    rises_left,
    allocates=False,
)
def settle(
    shape: Shape,
    state: State,
    order: Int64Array,
    price: Int64Array,
    held: Holdings,
    search: Search,
    buckets: Buckets,
    workspace: Workspace,
) -> int:
    """Send units until no node has an excess; return SETTLED, or why not: STUCK, NO_ROOM or NOTHING_SENT, a fault.

    `order` int64[N] is the block of each node; `price` int64[N] are the prices of `state` that may rise. Where it is
    stuck, `search.level` has the nodes reached, and `workspace.raised` by how much prices would rise next.
    """
    while has_excess(state):
        hold(shape, state.now, held, workspace.queue)
        if not number_keys(shape, state, search, buckets, False):
            return NO_ROOM
        if search_levels(shape, state, held, search, buckets, workspace):
            if not number_keys(shape, state, search, buckets, True):
                return NO_ROOM
            if push_units(shape, state, held, search, buckets, workspace) == 0:
                return NOTHING_SENT
            workspace.turns[1] = -1
            continue
        count = find_rises(order, search.level, workspace)
        if count != workspace.turns[1]:
            workspace.turns[0] = rises_left(order, price, search.level, workspace)
            workspace.turns[1] = count
        workspace.turns[0] -= 1
        if workspace.turns[0] < 0:
            return STUCK
        for node in range(price.size):
            price[node] += workspace.raised[node]
    return SETTLED
