"""Compute the chance that a partition is leaderless, under min-ISR or lost, for each kind of event.

What it decides, for one cluster as a ClusterView shows it:

    moment      at any moment brokers are down one by one, some of them lost and not yet replaced
    rack        one rack is down, each equally likely, on top of that
    power cut   all brokers stop, and a share of them never comes back; the state is that after power is back

Each event has the chance that some partition is in a state (`chance`), how many are on average (`mean`), and at most
in 99 of 100 cases (`p99`). A partition is lost if all replicas that have every committed record are lost with their
disks; the other states are those of `outages`.

Replicas out of sync, fenced brokers and reassignments are taken as they stand; the partitions that are in
a state already count. Where a topic does not show min.insync.replicas, its partitions never count as under it.

How: draws.py chooses the brokers; one machine word holds a broker's state in 64 draws. `chance_error` is the standard
error of the draws alone; assumptions are off by far more.

Example: two partitions on two of three brokers each; a broker is down one hour in ten:

    >>> from broker.cluster import ClusterView, PartitionTable, TopicView
    >>> table = PartitionTable(topic_index=[0, 0], partition_ids=[0, 1], replicas=[[1, 2], [2, 3]])
    >>> topics = [TopicView("t", min_insync_replicas=1)]
    >>> view = ClusterView.build(name="n", source="s", format="f", partitions=table, topics=topics)
    >>> rates = Rates(broker_outages_per_year=8766 / 9, broker_outage_minutes=60, broker_losses_per_year=0)
    >>> (moment, cut) = availability(view, rates, draw_count=4096, seed=7)
    >>> f"{moment.states['leaderless'].chance:.3f}"  # Exactly 2 * 0.1^2 - 0.1^3.
    '0.019'

Left out: brokers that fail because others did; two racks at once; the unflushed page cache (durability.py).

Source: Cidon et al., USENIX ATC 2013, for the power cut.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import ClusterView, Int32Array, Int64Array
from broker.entropy import derive
from broker.errors import UsageError
from placement.outages.succession import Successions, successions
from placement.risks.draws import DRAWS_MAX, DRAWS_MIN, WORD_DRAWS, Draws, Float64Array, Strata, WordArray, draw, strata
from placement.risks.rates import Rates

MOMENT: Final = "moment"
RACK: Final = "rack"
POWER_CUT: Final = "power cut"
EVENTS: Final = (MOMENT, RACK, POWER_CUT)
STATES: Final = ("leaderless", "under_min_isr", "lost")
_NEVER: Final = np.iinfo(np.int32).max
_WORDS_MAX: Final = 1 << 20  # Of levels, at a time: 8 MiB.
_REST: Final = 0.01  # What is left beyond the 99th percentile.


@attrs.frozen
class StateRisk:
    """Hold how likely and how many partitions are in one state: the chance of any, its standard error, mean, p99."""

    chance: float
    chance_error: float
    mean: float
    p99: int


@attrs.frozen
class EventRisk:
    """Hold the risks of one event; `per_year` is how often it begins, None for a moment; states by name."""

    event: str
    per_year: float | None
    draw_count: int
    states: Mapping[str, StateRisk]
    judged: bool
    """Whether min.insync.replicas is known of any partition."""


def availability(view: ClusterView, rates: Rates, *, draw_count: int, seed: int) -> tuple[EventRisk, ...]:
    """Return the risks of each event, racks only where they are known; `draw_count` is that of each event.

    Draws depend on the seed and the name of the cluster alone, so that placers are compared on the same outages. Raises
    UsageError for a view that does not list every partition.
    """
    if not DRAWS_MIN <= draw_count <= DRAWS_MAX:
        raise UsageError(f"draw_count is {draw_count}; allowed is {DRAWS_MIN} to {DRAWS_MAX}")
    if view.wholeness.refusal is not None:
        raise UsageError(f"cluster {view.name!r}: {view.wholeness.refusal}, so that chances are not known")
    found = successions(view)
    prefixes = prefixes_of(found)
    risks = []
    for place, event in enumerate(EVENTS):
        drawn, per_year = _drawn(
            event, view, found, rates, draw_count, derive(seed, zlib.crc32(view.name.encode()), place)
        )
        if drawn is not None:
            risks.append(_risk(event, per_year, drawn, found, prefixes))
    return tuple(risks)


def prefixes_of(found: Successions) -> Int32Array:
    """Return the prefixes of each partition's order that decide its states, int32[P, 4]: led, members, needed, clean.

    Leaderless if all of the first `led` are down, under min-ISR if `needed` or more of the first `members` are, lost if
    all of the first `clean` are lost; `needed` of 0 or less is always under min-ISR."""
    # The only member that a min.insync.replicas of 1 needs may be one that is elected from outside the ISR.
    members = np.where(found.min_isr <= 1, found.led_count, found.in_sync_count)
    needed = np.where(found.min_isr >= 0, members - found.min_isr + 1, _NEVER)
    return np.column_stack((found.led_count, members, needed, found.clean_count)).astype(np.int32)


def _drawn(
    event: str, view: ClusterView, found: Successions, rates: Rates, draw_count: int, seed: int
) -> tuple[Draws | None, float | None]:
    """Return the draws of an event and how often it begins a year; None for an event that there cannot be."""
    live = np.flatnonzero(found.live)
    down, lost, least, per_year = rates.down_share, rates.lost_share, 1, None
    racks = view.rack_places[live]
    rack_count = int(racks.max(initial=-1)) + 1
    if event == RACK:
        if not rack_count:
            return None, None
        least, per_year = rack_count, rates.rack_outages_per_year * rack_count
    if event == POWER_CUT:
        gone = rates.power_cut_lost_percent / 100
        down, lost = 1 - (1 - gone) * (1 - down), 1 - (1 - gone) * (1 - lost)
        per_year = rates.power_cuts_per_year
    chosen = strata(broker_count=live.size, down_chance=down, draw_count=draw_count, least=least)
    drawn = draw(chosen, broker_count=live.size, lost_chance=lost / down if down else 0.0, seed=seed)
    if event == RACK:
        drawn = _without_a_rack(drawn, racks, rack_count)
    if live.size < len(view.brokers):
        drawn = attrs.evolve(drawn, down=_widened(drawn.down, found), lost=_widened(drawn.lost, found))
    return drawn, per_year


def _without_a_rack(drawn: Draws, racks: Int64Array, rack_count: int) -> Draws:
    """Return the draws with one rack down in each, every rack with the same weight for each number of brokers down."""
    counts = drawn.strata.down_count
    first = np.searchsorted(counts, counts)
    chosen = (np.arange(counts.size) - first) % rack_count
    key = counts.astype(np.int64) * rack_count + chosen
    _, group, size = np.unique(key, return_inverse=True, return_counts=True)
    of_count = np.bincount(counts, weights=drawn.strata.weight)
    racks_of_count = np.bincount(np.unique(key) // rack_count, minlength=of_count.size)
    weight = of_count[counts] / racks_of_count[counts] / size[group]
    down = drawn.down.copy()
    for rack in range(rack_count):
        down[racks == rack] |= packed(chosen == rack, down.shape[1])
    return Draws(down, drawn.lost, Strata(counts, weight))


def packed(bits: NDArray[np.bool_], word_count: int) -> WordArray:
    """Return draws as words: bit i % 64 of word i // 64 is draw i."""
    wide = np.zeros(word_count * WORD_DRAWS, dtype=np.bool_)
    wide[: bits.size] = bits
    return np.packbits(wide, bitorder="little").view("<u8").astype(np.uint64)


def _widened(bits: WordArray, found: Successions) -> WordArray:
    wide = np.zeros((found.live.size, bits.shape[1]), dtype=np.uint64)
    wide[found.live] = bits
    return wide


def _risk(event: str, per_year: float | None, drawn: Draws, found: Successions, prefixes: Int32Array) -> EventRisk:
    counts = state_counts(drawn, found.order, prefixes)
    return EventRisk(
        event=event,
        per_year=per_year,
        draw_count=drawn.strata.weight.size,
        states={name: _state(counts[place], drawn.strata) for place, name in enumerate(STATES)},
        judged=bool((found.min_isr >= 0).any()),
    )


def state_counts(drawn: Draws, order: Int32Array, prefixes: Int32Array) -> Int64Array:
    """Return how many partitions are in each of `STATES` in each draw, int64[3, N]."""
    draw_count, word_count = drawn.strata.weight.size, drawn.down.shape[1]
    counts = np.zeros((len(STATES), draw_count), dtype=np.int64)
    step = max(_WORDS_MAX // (word_count * (order.shape[1] + 1)), 1)
    for start in range(0, order.shape[0], step):
        rows = order[start : start + step]
        led, members, needed, clean = prefixes[start : start + step].T
        lost = np.where(clean > 0, clean, _NEVER)
        asked = (drawn.down, led, led), (drawn.down, members, needed), (drawn.lost, clean, lost)
        for state, (bits, count, least) in enumerate(asked):
            counts[state] += _draw_counts(_at_least(bits, rows, count, least))[:draw_count]
    return counts


def _at_least(bits: WordArray, rows: Int32Array, count: Int32Array, least: Int32Array) -> WordArray:
    """Return the draws in which `least` or more of the first `count` brokers of each row have their bits, uint64[n, W].

    Word j of a row of levels has the draws in which j or more of the brokers so far do.
    """
    width = rows.shape[1]
    levels = np.zeros((width + 2, rows.shape[0], bits.shape[1]), dtype=np.uint64)
    levels[0] = ~np.uint64(0)
    for place in range(width):
        some = np.where((place < count)[:, None], bits[rows[:, place]], np.uint64(0))
        for level in range(place + 1, 0, -1):
            levels[level] |= levels[level - 1] & some
    return levels[np.clip(least, 0, width + 1), np.arange(rows.shape[0])]


def _draw_counts(words: WordArray) -> Int64Array:
    """Return in how many rows of uint64[n, W] the bit of each draw is set, int64[64 W].

    Three rows of one weight become their sum and a carry of twice the weight, until one row of each weight is left.
    """
    counts, place = np.zeros(words.shape[1] * WORD_DRAWS, dtype=np.int64), 0
    words = words[words.any(axis=1)]
    while words.shape[0]:
        carries = [words[:0]]
        while words.shape[0] > 1:
            padding = np.zeros((-words.shape[0] % 3, words.shape[1]), dtype=np.uint64)
            one, two, three = np.split(np.concatenate([words, padding]), 3)
            carries.append((one & two) | ((one ^ two) & three))
            words = one ^ two ^ three
        bits = np.unpackbits(words[0].astype("<u8").view(np.uint8), bitorder="little")
        counts += bits.astype(np.int64) << place
        words, place = np.concatenate(carries), place + 1
    return counts


def _state(counts: Int64Array, drawn: Strata) -> StateRisk:
    struck = np.flatnonzero(counts)
    if not struck.size:
        return StateRisk(0.0, 0.0, 0.0, 0)
    many, weights = counts[struck], drawn.weight[struck]
    # Sums are exactly rounded, so that they are the same on every machine.
    chance = math.fsum(weights.tolist())
    return StateRisk(
        chance=chance,
        chance_error=_error(struck, drawn),
        mean=math.fsum((many * weights).tolist()),
        p99=_quantile(many, weights) if chance > _REST else 0,
    )


def _error(struck: Int64Array, drawn: Strata) -> float:
    """Return the standard error of the chance: that of the share of draws `struck`, for each number of brokers down."""
    sizes = np.bincount(drawn.down_count)
    shares = np.bincount(drawn.down_count[struck], minlength=sizes.size) / np.maximum(sizes, 1)
    weights = np.bincount(drawn.down_count, weights=drawn.weight)
    return math.sqrt(math.fsum((weights**2 * shares * (1 - shares) / np.maximum(sizes, 1)).tolist()))


def _quantile(counts: Int64Array, weights: Float64Array) -> int:
    """Return the smallest number that counts exceed with a weight of at most `_REST`; all counts left out are 0."""
    order = np.argsort(-counts, kind="stable")
    above = np.cumsum(weights[order])
    place = min(int(np.searchsorted(above, _REST, side="right")), order.size - 1)
    return int(counts[order[place]])
