"""What the two models find: every known fault at its depth, and none in current rules.

The whole scopes take minutes and run by `python -m replication explore --table --full`.
"""

from __future__ import annotations

import pytest

from broker.ids import BrokerId
from replication.explore import ElrModel, ElrScope, TruncationModel, TruncationScope, described, search
from replication.explore.cli import KIP_320, VARIANTS, Variant
from replication.rules.election import Ballot, Choice, Elected, Election
from replication.rules.switches import CURRENT, Rules, rules_of, without

QUICK = tuple(variant for variant in VARIANTS if variant.depth is not None and variant.depth <= 8) + tuple(
    variant for variant in VARIANTS if variant.name in ("kip101, 2 replicas", "kip279, 2 replicas")
)


@pytest.mark.parametrize("variant", QUICK, ids=lambda variant: variant.name)
def test_a_known_fault_is_found_at_its_depth(variant: Variant) -> None:
    model = variant.model()
    outcome = search(model)
    assert outcome.fault is not None
    assert outcome.depth == variant.depth == len(outcome.history) - 1
    assert model.broken(outcome.history[-1]) == outcome.fault
    assert len(list(described(model, outcome.history))) == variant.depth


@pytest.mark.parametrize("rules", [CURRENT, KIP_320], ids=["current", "kip320"])
def test_truncation_holds_with_two_replicas(rules: Rules) -> None:
    outcome = search(TruncationModel(TruncationScope(replicas=2), rules))
    assert outcome.holds
    assert outcome.state_count > 5_000


def test_current_rules_lose_nothing_in_a_small_scope() -> None:
    outcome = search(ElrModel(ElrScope(fences=1)))
    assert outcome.holds
    assert outcome.state_count > 2_000


def test_renaming_the_brokers_changes_no_count() -> None:
    class Named(TruncationModel):
        def renamed(self, state: int) -> tuple[int, int]:
            return state, 1

    scope = TruncationScope(replicas=3, log_size=1, records=1, epoch_max=1)
    kept, named = search(TruncationModel(scope)), search(Named(scope))
    assert (kept.state_count, kept.depth) == (named.state_count, named.depth)
    assert kept.kept_count * 5 < named.kept_count


def test_a_history_is_told_in_plain_words() -> None:
    model = TruncationModel(TruncationScope(replicas=2), rules_of("0.10.2"))
    outcome = search(model)
    lines = list(described(model, outcome.history))
    assert lines[0] == "  1. the controller elects 0 in epoch 0"
    assert lines[-1].endswith("and cuts its log to 0")
    assert outcome.fault is not None
    assert outcome.fault.startswith("StrongISR: 0 leads in epoch ")
    assert model.state_text(outcome.history[0]) == (
        "0: [empty] committed 0 epoch -1; 1: [empty] committed 0 epoch -1; ISR 0,1"
    )


def test_the_loss_without_a_frozen_high_watermark_needs_no_lossy_restart() -> None:
    model = ElrModel(ElrScope(losses=0), without(CURRENT, "strict_min_isr"))
    outcome = search(model)
    assert outcome.depth == 5
    assert outcome.fault is not None
    assert outcome.fault.startswith("LeaderCompleteness: ")
    assert model.state_text(model.initial()) == (
        "0: [empty] committed 0; 1: [empty] committed 0; 2: [empty] committed 0; leader 0 epoch 0; ISR 0,1,2; ELR empty"
    )


def first_alive(ballot: Ballot, election: Election, rules: Rules) -> Elected:
    """Elect the first replica that is alive, in sync or not."""
    leader = next((broker for broker in ballot.replicas if broker in ballot.acceptable), BrokerId(-1))
    return Elected(leader, Choice.NOBODY if leader == -1 else Choice.UNCLEAN)


def test_an_election_policy_of_ones_own_can_be_searched() -> None:
    outcome = search(ElrModel(ElrScope(losses=0), policy=first_alive))
    assert outcome.fault is not None
    assert outcome.depth <= 6
