"""Simulated years agree with closed forms and with combinatorics; takeovers and unflushed records with plain counts."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
from hypothesis import given

from broker.errors import UsageError
from placement.outages.lost import outage
from placement.risks.durability import Years, durability, losses_per_year, simulated_losses, takeovers
from placement.risks.rates import HOURS_PER_YEAR, Rates
from placement.risks.years_kernel import ALONE, POWER, fill_years
from tests.placement.outages.views import FEW, Small, clusters
from tests.placement.risks.test_availability import ring

CALM = Rates(broker_losses_per_year=0, power_cuts_per_year=0)


def alone(loss_rate: float, replace_years: float) -> Rates:
    return attrs.evolve(CALM, broker_losses_per_year=loss_rate, replace_hours=replace_years * HOURS_PER_YEAR)


def disjoint(count: int, factor: int) -> np.ndarray:
    return np.arange(count * factor, dtype=np.int32).reshape(count, factor)


@pytest.mark.parametrize(("factor", "loss_rate", "replace_years"), [(1, 1, 0.5), (2, 2, 0.05), (4, 3, 0.2)])
def test_independent_losses_come_as_often_as_the_closed_form_says(
    factor: int, loss_rate: float, replace_years: float
) -> None:
    """Twenty copysets that share no broker, over so many years that some 2,000 losses are expected; four sigma."""
    expected = 20 * losses_per_year(factor, loss_rate=loss_rate, replace_years=replace_years)
    years = 2_000 / expected
    found = simulated_losses(disjoint(20, factor), 20 * factor, alone(loss_rate, replace_years), years, seed=11)
    assert abs(found[ALONE, factor] - 2_000) < 4 * math.sqrt(2_000)
    assert found.sum() == found[ALONE, factor]


def test_copysets_that_share_brokers_are_lost_as_often_as_their_number_says() -> None:
    """Every pair of six brokers: losses of copysets add up, though one broker may complete several at once."""
    sets = np.array([(low, high) for low in range(6) for high in range(low + 1, 6)], dtype=np.int32)
    rates = {"loss_rate": 2.0, "replace_years": 0.1}
    expected = len(sets) * losses_per_year(2, **rates)
    years = 4_000 / expected
    events, counts = np.zeros((2, 3), np.int64), np.zeros((2, 3), np.int64)
    first = np.arange(0, 31, 5)
    places = np.array([row for broker in range(6) for row in range(len(sets)) if broker in sets[row]])
    stream = np.array([9], dtype=np.uint64)
    total = fill_years(stream, years, (2.0, 0.1, 0.0, 0.0), (sets, first, places), (events, counts))
    assert abs(counts[ALONE, 2] - 4_000) < 5 * math.sqrt(2 * 4_000)  # Several at once: more than Poisson's spread.
    assert 0 < events[ALONE, 2] < counts[ALONE, 2]
    lost_per_year = 6 * 2.0 / 1.2
    assert abs(total / years - lost_per_year) < 0.05 * lost_per_year


def test_power_cuts_lose_data_as_often_as_combinations_say() -> None:
    """A cut a year loses three of ten brokers in a ring of pairs; replaced at once."""
    rates = attrs.evolve(CALM, power_cuts_per_year=1.0, power_cut_lost_percent=30.0, replace_hours=0.0)
    rows = np.array([sorted((place, (place + 1) % 10)) for place in range(10)], dtype=np.int32)
    found = simulated_losses(rows, 10, rates, 20_000, seed=3)
    kept = sum(0.3**k * 0.7 ** (10 - k) * 10 / (10 - k) * math.comb(10 - k, k) for k in range(6))
    assert found[ALONE].sum() == 0
    assert abs(found[POWER, 2] / 20_000 - (1 - kept)) < 4 * math.sqrt(kept * (1 - kept) / 20_000)


def test_losses_count_by_the_number_of_replicas() -> None:
    """One broker holds partitions alone, and each loss of it loses them; pairs are lost more rarely."""
    rows = np.array([[0, -1], [0, -1], [1, 2]], dtype=np.int32)
    found = simulated_losses(rows, 3, alone(1.0, 0.1), 10_000, seed=3)
    assert 0 < found[ALONE, 2] < found[ALONE, 1]
    assert abs(found[ALONE, 1] - 10_000 / 1.1) < 400


def test_a_cluster_depends_on_the_seed_and_its_name_alone() -> None:
    view, rates = ring(12, 2), alone(1.0, 0.05)
    first = durability(view, rates, Years(years=300), seed=7)
    assert durability(view, rates, Years(years=300), seed=7) == first
    assert durability(view, rates, Years(years=300), seed=8) != first
    assert first[0].loss_count_independent > 0


@FEW
@given(clusters())
def test_takeovers_are_those_of_the_outage_of_each_broker(small: Small) -> None:
    view = small.view()
    found = takeovers(view)
    taken = [outage(view, [broker.id]).takeover for broker in view.brokers]
    shares = [one.failover_share for one in taken if one.failover_share is not None]
    if not shares:
        assert found == (None, None, None)
        return
    assert found[0] == pytest.approx(sum(shares) / len(shares))
    assert found[1] == pytest.approx(max(shares))


def test_in_a_ring_one_neighbour_takes_over_everything_and_leads_twice_its_share() -> None:
    assert takeovers(ring(10, 3)) == (1.0, 1.0, 2.0)


def test_unflushed_records_are_lost_in_cuts_and_in_racks_that_hold_all_replicas() -> None:
    rates = attrs.evolve(CALM, power_cuts_per_year=0.2, rack_outages_per_year=0.5)
    apart = durability(ring(6, 3, racks=3), rates, Years(years=1), seed=1)[0]
    assert apart.unflushed_partitions_per_year == pytest.approx(0.2 * 6)
    view = ring(6, 3)
    halves = tuple(attrs.evolve(one, rack="a" if one.id < 3 else "b") for one in view.brokers)
    two = durability(attrs.evolve(view, brokers=halves), rates, Years(years=1, rack_power_share=0.5), seed=1)[0]
    assert two.unflushed_partitions_per_year == pytest.approx(0.2 * 6 + 0.5 * 0.5 * 2)
    none = durability(ring(6, 3), rates, Years(years=1, unflushed_loss_chance=0.0), seed=1)[0]
    assert none.unflushed_partitions_per_year == 0


def test_no_years_and_no_partitions_are_no_losses() -> None:
    (found,) = durability(ring(4, 2), Rates(), Years(years=0), seed=1)
    assert (found.loss_count_independent, found.losses_per_year_power_cut) == (0, 0)
    assert simulated_losses(np.empty((0, 3), np.int32), 4, Rates(), 100, seed=1).sum() == 0
    assert simulated_losses(np.array([[-1, -1]], np.int32), 4, Rates(), 100, seed=1).sum() == 0


@pytest.mark.parametrize(
    ("given_years", "sentence"),
    [
        ({"years": -1.0}, "years is -1; allowed is a number from 0 to 1e+09"),
        ({"rack_power_share": 2.0}, "rack_power_share is 2; allowed is a number from 0 to 1"),
    ],
)
def test_a_number_beyond_its_limit_is_refused(given_years: dict[str, float], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        Years(**given_years)
    assert str(caught.value) == sentence


def test_a_view_that_lists_only_some_partitions_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^cluster 'ring': not every partition is listed"):
        durability(attrs.evolve(ring(3, 2), partitions_complete=False), Rates(), Years(), seed=1)


@pytest.mark.parametrize("broker_losses_per_year", [0.1, 0.75])
def test_of_losses_and_power_cuts_each_comes_as_often_as_its_own_rate_says(broker_losses_per_year: float) -> None:
    """Four brokers that alone hold what they hold are lost one by one; cuts lose all of them at once.

    Some 40,000 losses and 20,000 cuts are expected, with a sum of rates below and above one a year; four sigma.
    """
    power_cuts_per_year = 2 * broker_losses_per_year
    rates = attrs.evolve(
        CALM,
        broker_losses_per_year=broker_losses_per_year,
        power_cuts_per_year=power_cuts_per_year,
        power_cut_lost_percent=100.0,
        replace_hours=0.0,
    )
    years = 20_000 / power_cuts_per_year
    found = simulated_losses(disjoint(4, 1), 4, rates, years, seed=5)
    assert abs(found[POWER, 1] - 20_000) < 4 * math.sqrt(20_000)
    assert abs(found[ALONE, 1] - 40_000) < 4 * math.sqrt(40_000)
