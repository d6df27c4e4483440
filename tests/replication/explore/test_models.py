"""What the two models find: every known fault at its depth, and none in current rules.

The whole scopes take minutes and run by `python -m tests.replication.explore.variants --full`.
"""

from __future__ import annotations

import pytest

from replication.explore import ElrModel, ElrScope, TruncationModel, TruncationScope, described, search
from replication.rules.switches import CURRENT, Rules, without
from tests.replication.explore.variants import KIP_320, VARIANTS, Variant

QUICK_DEPTH = 6
QUICK_NAMES = ("kip101, 2 replicas", "kip279, 2 replicas")
KNOWN = [
    pytest.param(variant, marks=() if variant.depth <= QUICK_DEPTH or variant.name in QUICK_NAMES else pytest.mark.deep)
    for variant in VARIANTS
    if variant.depth is not None and (variant.depth <= 8 or variant.name in QUICK_NAMES)
]


@pytest.mark.parametrize("variant", KNOWN, ids=lambda variant: variant.name)
def test_a_known_fault_is_found_at_its_depth(variant: Variant) -> None:
    model = variant.model()
    outcome = search(model)
    assert outcome.fault is not None
    assert outcome.depth == variant.depth == len(outcome.history) - 1
    assert model.broken(outcome.history[-1]) == outcome.fault
    assert len(list(described(model, outcome.history))) == variant.depth


@pytest.mark.parametrize("rules", [CURRENT, KIP_320], ids=["current", "kip320"])
def test_truncation_holds_with_two_replicas(rules: Rules) -> None:
    model = TruncationModel(TruncationScope(replicas=2), rules)
    outcome = search(model)
    assert outcome.holds
    assert outcome.state_count > 5_000
    text = "0: [empty] committed 0 epoch -1; 1: [empty] committed 0 epoch -1; ISR 0,1"
    assert model.state_text(model.initial()) == text


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


def test_the_loss_without_a_frozen_high_watermark_needs_no_lossy_restart() -> None:
    model = ElrModel(ElrScope(losses=0), without(CURRENT, "strict_min_isr"))
    outcome = search(model)
    assert outcome.depth == 5
    assert outcome.fault is not None
    assert outcome.fault.startswith("LeaderCompleteness: ")
    assert model.state_text(model.initial()) == (
        "0: [empty] committed 0; 1: [empty] committed 0; 2: [empty] committed 0; leader 0 epoch 0; ISR 0,1,2; ELR empty"
    )
