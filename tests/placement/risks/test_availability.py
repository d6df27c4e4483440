"""Draws of outages equal a count broker by broker, weigh as chances do, and depend on the seed alone."""

from __future__ import annotations

import math
from itertools import combinations

import attrs
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.entropy import SplitMix64
from broker.errors import UsageError
from broker.ids import BrokerId
from broker.liveness import Liveness
from placement.outages.lost import outage
from placement.outages.succession import successions
from placement.risks import availability as module
from placement.risks.availability import availability, prefixes_of, state_counts
from placement.risks.draws import Draws, Strata, binomial, draw, next_below, next_chance, next_wait, next_word, strata
from placement.risks.rates import Rates
from tests.placement.outages.views import FEW, Small, clusters

NO_RACK_OUTAGES = attrs.evolve(Rates(), rack_outages_per_year=0, power_cuts_per_year=0)


def ring(count: int, factor: int, *, min_isr: int = 2, racks: int = 0, copies: int = 1) -> ClusterView:
    rows = [[(first + place) % count for place in range(factor)] for first in range(count)] * copies
    table = PartitionTable(topic_index=[0] * len(rows), partition_ids=list(range(len(rows))), replicas=rows)
    brokers = [BrokerView(id=BrokerId(one), rack=f"r{one % racks}" if racks else None) for one in range(count)]
    return ClusterView.build(
        name="ring", source="s", format="f", partitions=table, brokers=brokers,
        topics=[TopicView("t", min_insync_replicas=min_isr)],
    )  # fmt: skip


def bits_of(words: np.ndarray, count: int) -> np.ndarray:
    return np.unpackbits(words.astype("<u8").view(np.uint8), axis=-1, bitorder="little")[:, :count].astype(bool)


@FEW
@given(clusters(), st.integers(0, 2**63 - 1), st.sampled_from([0.05, 0.4, 0.9]), st.sampled_from([0.0, 0.5, 1.0]))
def test_states_equal_the_outage_of_each_draw(small: Small, seed: int, down: float, lost: float) -> None:
    """70 draws fill a word and a piece of one; `outage` counts leaderless and under min-ISR of each."""
    view = small.view()
    found = successions(view)
    chosen = strata(broker_count=len(view.brokers), down_chance=down, draw_count=70)
    drawn = draw(chosen, broker_count=len(view.brokers), lost_chance=lost, seed=seed)
    counts = state_counts(drawn, found.order, prefixes_of(found))
    gone, destroyed = bits_of(drawn.down, chosen.weight.size), bits_of(drawn.lost, chosen.weight.size)
    assert not (destroyed & ~gone).any()
    for place in range(chosen.weight.size):
        ids = [broker.id for broker, is_gone in zip(view.brokers, gone[:, place], strict=True) if is_gone]
        expected = outage(view, ids).counts
        assert counts[0, place] == expected.leaderless_count
        assert counts[1, place] == (expected.under_min_isr_count or 0)
        clean = [order[:many] for order, many in zip(found.order, found.clean_count, strict=True)]
        assert counts[2, place] == sum(bool(len(one)) and destroyed[one, place].all() for one in clean)


@given(st.integers(1, 40), st.floats(0, 1), st.integers(64, 2000), st.integers(1, 5))
@example(broker_count=1, chance=1.0, draw_count=64, least=1)
@example(broker_count=40, chance=0.5, draw_count=64, least=3)
def test_draws_weigh_one_and_their_numbers_of_brokers_weigh_their_chance(
    broker_count: int, chance: float, draw_count: int, least: int
) -> None:
    chosen = strata(broker_count=broker_count, down_chance=chance, draw_count=draw_count, least=least)
    assert chosen.weight.size == chosen.down_count.size <= draw_count
    assert math.isclose(chosen.weight.sum(), 1, rel_tol=1e-9)
    assert (np.diff(chosen.down_count) >= 0).all()
    sizes = np.bincount(chosen.down_count)
    if not np.allclose(chosen.weight, chosen.weight[0]):  # Stratified, not plain.
        expected = binomial(broker_count, chance)
        found = np.bincount(chosen.down_count, weights=chosen.weight, minlength=broker_count + 1)
        assert np.abs(found - expected).max() < 1e-9
        assert (sizes[sizes > 0] >= least).all()


def test_chances_of_numbers_of_brokers_are_binomial() -> None:
    found = binomial(10, 0.3)
    assert [round(float(one), 12) for one in found] == [
        round(math.comb(10, k) * 0.3**k * 0.7 ** (10 - k), 12) for k in range(11)
    ]
    assert binomial(3, 0).tolist() == [1, 0, 0, 0]
    assert binomial(3, 1).tolist() == [0, 0, 0, 1]


def test_each_broker_has_its_turn_and_sets_are_random() -> None:
    one = draw(Strata(np.ones(12, np.int32), np.full(12, 1 / 12)), broker_count=6, lost_chance=0, seed=1)
    assert bits_of(one.down, 12).sum(axis=1).tolist() == [2] * 6
    many = Strata(np.full(6000, 2, np.int32), np.full(6000, 1 / 6000))
    bits = bits_of(draw(many, broker_count=5, lost_chance=0, seed=1).down, 6000)
    pairs = [int((bits[low] & bits[high]).sum()) for low, high in combinations(range(5), 2)]
    assert min(pairs) > 510  # 600 expected of each of ten pairs.
    assert max(pairs) < 690


def test_a_moment_of_independent_brokers_has_the_chances_of_the_binomial() -> None:
    """A partition on two of four brokers, each down a tenth of the time: the closed form within four errors."""
    view = ring(4, 2, min_isr=2)
    rates = Rates(broker_outages_per_year=8766 / 9, broker_outage_minutes=60, broker_losses_per_year=0)
    assert math.isclose(rates.down_share, 0.1)
    moment = availability(view, rates, draw_count=1 << 14, seed=5)[0]
    under = 1 - 0.9**4
    pairs = [0.1**k * 0.9 ** (4 - k) for k in range(5)]
    leaderless = 4 * pairs[2] + 4 * pairs[3] + pairs[4]  # Four neighbouring pairs; three or four are always some.
    assert abs(moment.states["under_min_isr"].chance - under) <= 1e-9  # k = 0 decides alone.
    found = moment.states["leaderless"]
    assert 0 < found.chance_error < 2e-3
    assert abs(found.chance - leaderless) < 4 * found.chance_error
    assert abs(found.mean - 4 * 0.01) < 1e-3
    assert moment.states["lost"].chance == 0


def test_a_rack_that_holds_whole_partitions_takes_them_down_in_its_share_of_outages() -> None:
    view = ring(6, 3, racks=3)
    (rack,) = [one for one in availability(view, NO_RACK_OUTAGES, draw_count=1024, seed=2) if one.event == "rack"]
    assert rack.states["leaderless"].chance < 1e-3  # Rows r0 r1 r2: one of each goes.
    assert rack.per_year == 0
    same = attrs.evolve(view, brokers=tuple(attrs.evolve(one, rack="a") for one in view.brokers))
    (rack,) = [one for one in availability(same, Rates(), draw_count=128, seed=2) if one.event == "rack"]
    assert rack.states["leaderless"].chance == pytest.approx(1)
    assert rack.states["leaderless"].p99 == 6
    two = tuple(attrs.evolve(one, rack="a" if one.id < 3 else "b") for one in view.brokers)
    rates = attrs.evolve(Rates(), broker_outages_per_year=0, broker_losses_per_year=0)
    (rack,) = [one for one in availability(attrs.evolve(view, brokers=two), rates, draw_count=64, seed=2)
               if one.event == "rack"]  # fmt: skip
    assert (rack.states["leaderless"].chance, rack.states["leaderless"].mean) == (1.0, 1.0)
    assert rack.states["lost"].chance == 0


def test_a_power_cut_loses_copysets_as_often_as_combinations_say() -> None:
    """Ten brokers in a ring of pairs, three in ten lost for good: the chance that two neighbours are among them."""
    rates = Rates(power_cut_lost_percent=30, broker_outages_per_year=0, broker_losses_per_year=0)
    cut = availability(ring(10, 2), rates, draw_count=1 << 16, seed=5)[-1]
    kept = sum(0.3**k * 0.7 ** (10 - k) * 10 / (10 - k) * math.comb(10 - k, k) for k in range(6))
    assert cut.event == "power cut"
    assert cut.states["lost"].chance_error < 2e-3
    assert abs(cut.states["lost"].chance - (1 - kept)) < 4 * cut.states["lost"].chance_error
    assert abs(cut.states["lost"].mean - 10 * 0.09) < 0.02


def test_the_same_seed_gives_the_same_risks_and_another_seed_others() -> None:
    view = ring(12, 3, racks=3, copies=2)
    first = availability(view, Rates(), draw_count=256, seed=7)
    assert availability(view, Rates(), draw_count=256, seed=7) == first
    assert availability(view, Rates(), draw_count=256, seed=8) != first
    assert availability(attrs.evolve(view, name="other"), Rates(), draw_count=256, seed=7) != first


def test_a_fenced_broker_never_fails_again() -> None:
    view = ring(4, 2)
    fenced = (attrs.evolve(view.brokers[0], fenced=True), *view.brokers[1:])
    moment = availability(attrs.evolve(view, brokers=fenced), Rates(), draw_count=64, seed=7)[0]
    assert moment.states["under_min_isr"].chance == pytest.approx(1)
    assert moment.states["under_min_isr"].p99 == 2


def test_an_empty_cluster_has_no_risk() -> None:
    table = PartitionTable(topic_index=[], partition_ids=[], replicas=np.empty((0, 3), np.int32))
    view = ClusterView.build(name="n", source="s", format="f", partitions=table)
    for one in availability(view, Rates(), draw_count=64, seed=7):
        assert {state.chance for state in one.states.values()} == {0}


def test_words_are_those_of_our_generator() -> None:
    stream, source = np.array([41], dtype=np.uint64), SplitMix64(41)
    with np.errstate(over="ignore"):
        assert [int(next_word(stream)) >> 32 for _ in range(9)] == [source.next_int() & 0xFFFFFFFF for _ in range(9)]
        assert {next_below(stream, 3) for _ in range(50)} == {0, 1, 2}
        waits = [next_wait(stream, 2.0) for _ in range(2000)]
        assert 0 < next_chance(stream) < 1
    assert 1.8 < sum(waits) / 2000 < 2.2


@pytest.mark.parametrize("count", [63, (1 << 20) + 1])
def test_too_few_and_too_many_draws_are_refused(count: int) -> None:
    with pytest.raises(UsageError, match=f"^draw_count is {count}; allowed is 64 to 1048576$"):
        availability(ring(3, 2), Rates(), draw_count=count, seed=1)


def test_a_rate_beyond_its_limit_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^power_cut_lost_percent is 101; allowed is a number from 0 to 100$"):
        Rates(power_cut_lost_percent=101)


def test_a_view_that_lists_only_some_partitions_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^cluster 'ring': not every partition is listed"):
        availability(attrs.evolve(ring(3, 2), partitions_complete=False), Rates(), draw_count=64, seed=1)


def test_draws_are_made_of_live_brokers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    def seen(chosen: Strata, *, broker_count: int, lost_chance: float, seed: int) -> Draws:
        counts.append(broker_count)
        return draw(chosen, broker_count=broker_count, lost_chance=lost_chance, seed=seed)

    monkeypatch.setattr(module, "draw", seen)
    view = ring(4, 2)
    module.availability(
        attrs.evolve(view, brokers=(attrs.evolve(view.brokers[0], fenced=True), *view.brokers[1:])),
        Rates(), draw_count=64, seed=7,
    )  # fmt: skip
    assert counts == [3, 3]


def test_records_are_lost_where_an_unclean_leader_takes_over() -> None:
    """Only broker 0 is in sync and lost; 1 leads uncleanly, so the partition is not leaderless."""
    topic = TopicView("t", min_insync_replicas=1, configs=(("unclean.leader.election.enable", "true"),))
    table = PartitionTable(topic_index=[0], partition_ids=[0], replicas=[[0, 1, 2]], isr=[[0]], leader=[0])
    brokers = [BrokerView(id=BrokerId(each), stated=Liveness.ALIVE) for each in range(3)]
    view = ClusterView.build(name="n", source="s", format="f", brokers=brokers, partitions=table, topics=[topic])
    found = successions(view)
    bits = np.array([[1], [0], [0]], dtype=np.uint64)
    prefixes = prefixes_of(found)
    assert (found.led_count[0], found.clean_count[0]) == (3, 1)
    counts = state_counts(Draws(bits, bits, Strata(np.array([1], np.int32), np.ones(1))), found.order, prefixes)
    assert counts.tolist() == [[0], [0], [1]]
