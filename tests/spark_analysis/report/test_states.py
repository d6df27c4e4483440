"""The worst thing about a cluster, in words: states before skews, the largest skew before others."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from spark_analysis.report.model import Report, Spreads
from spark_analysis.report.rows import ClusterFacts, Spread
from spark_analysis.report.states import STATES, healthy_in_words, skew_in_words, worst_in_words


@pytest.fixture
def facts(fleet: Report) -> ClusterFacts:
    calm: dict[str, Any] = {state.field: None for state in STATES}
    return attrs.evolve(fleet.rows[0].facts, **calm)


def spread(
    quantity: str, *, moves: int, total: int = 100, ratio: float = 2.1, best: float = 1.0, exact: bool = True
) -> Spread:
    return Spread(
        cluster_id=0,
        placer="dump",
        scope="broker",
        quantity=quantity,
        group_count=10,
        total=total,
        min=1,
        mean=10.0,
        max=21,
        max_group="7",
        max_over_mean=ratio,
        stdev=1.0,
        cv=0.1,
        gini=0.1,
        moves=moves,
        moves_share=moves / total,
        best_max_over_mean=best,
        best_stdev=0,
        best_cv=0,
        best_gini=0,
        moves_exact=exact,
    )


def test_a_skew_within_the_tolerance_is_not_a_finding(facts: ClusterFacts) -> None:
    """1 % may move without a word; the sentence does not say that nothing could be better."""
    near, far = Spreads(leaders=spread("leaders", moves=1)), Spreads(leaders=spread("leaders", moves=2))
    assert worst_in_words(facts, near) is None
    assert healthy_in_words(facts, near) == "nothing: within 1 % of the best possible"
    assert worst_in_words(facts, far) is not None


def test_a_tolerance_of_the_users_decides_what_is_uneven(facts: ClusterFacts) -> None:
    five = Spreads(replicas=spread("replicas", moves=5))
    assert (worst_in_words(facts, five, 0.04) or "").startswith("broker 7 holds")
    assert worst_in_words(facts, five, 0.05) is None
    assert healthy_in_words(facts, five, 0.05) == "nothing: within 5 % of the best possible"


def test_a_state_comes_before_any_skew(facts: ClusterFacts) -> None:
    spreads = Spreads(leaders=spread("leaders", moves=90))
    broken = attrs.evolve(facts, leaderless_count=1, under_replicated_count=9)
    assert worst_in_words(broken, spreads) == "1 partition has no leader"
    assert worst_in_words(attrs.evolve(broken, leaderless_count=0), spreads) == "9 partitions are under-replicated"


def test_a_mild_state_comes_after_skews(facts: ClusterFacts) -> None:
    mild = attrs.evolve(facts, not_preferred_leader_count=2)
    assert worst_in_words(mild, Spreads()) == "2 partitions are not led by their preferred replica"
    assert (worst_in_words(mild, Spreads(leaders=spread("leaders", moves=2))) or "").startswith("broker 7")


def test_only_what_is_known_in_full_is_called_even(facts: ClusterFacts) -> None:
    dump = attrs.evolve(facts, format="kafka-topics")
    assert healthy_in_words(dump, Spreads()) == "nothing that the input shows"
    known: dict[str, Any] = {state.field: 0 for state in STATES}
    assert healthy_in_words(attrs.evolve(dump, **known), Spreads()) == "nothing: as even as it can be"
    assert healthy_in_words(facts, Spreads()) == "nothing: as even as it can be"


@pytest.mark.parametrize(
    ("skewed", "said"),
    [
        (spread("leaders", moves=14), "broker 7 leads 2.1 times its share; moving 14 leaders would even it out"),
        (
            spread("replicas", moves=1, ratio=1.05),
            "broker 7 holds 1.05 times its share of replicas; moving 1 replica would even it out",
        ),
        (
            spread("bytes", moves=2048, total=4096, exact=False),
            "broker 7 holds 2.1 times its share of bytes; evening it out moves at least 2 KiB",
        ),
        (
            spread("replicas", moves=14, best=1.84),
            "broker 7 holds 2.1 times its share of replicas where 1.8 is the best; "
            "moving 14 replicas would even it out",
        ),
        (
            spread("replicas", moves=3, ratio=1.2, best=1.2),
            "some brokers have too few replicas; moving 3 replicas would even it out",
        ),
    ],
)
def test_a_skew_names_its_broker_and_what_has_to_move(skewed: Spread, said: str) -> None:
    assert skew_in_words(skewed) == said
