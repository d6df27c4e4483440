"""Old bugs come back when a fix is turned off, and a run under faults finds them; each line is a pinned seed.

The exhaustive search finds every one of them, and others, at its depth; here they are found in whole clusters with real
logs. The checkers hold each run against current rules.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from broker.units import DurationMs
from replication.rules.switches import CURRENT, SWITCHES, Rules, Truncation, without
from replication.simulation import Options, harsh, run, swarm

pytestmark = pytest.mark.deep

DURATION = DurationMs(180_000)
Maker = Callable[[int, DurationMs, Rules], Options]


def rules_without(name: str) -> Rules:
    return without(CURRENT, name) if name in SWITCHES else attrs.evolve(CURRENT, truncation=Truncation(name))


@pytest.mark.parametrize(
    ("name", "make", "seed", "codes"),
    [
        ("maximal_isr", harsh, 4, {"I4", "I5", "I6", "I29"}),
        ("isr_join_epoch_start", harsh, 4, {"I6"}),
        ("elr_excludes_unclean", swarm, 0, {"I25"}),
        ("elr", swarm, 0, {"I2", "I25"}),
        ("fence_one_at_a_time", harsh, 4, {"I2", "I3"}),
        ("hw", swarm, 1, {"I5", "I6", "I16"}),
        ("hw", harsh, 1, {"I4", "I5", "I6", "I16"}),
        ("kip101", harsh, 15, {"I4", "I5", "I6"}),
    ],
)
def test_an_old_bug_is_found(name: str, make: Maker, seed: int, codes: set[str]) -> None:
    options = make(seed, DURATION, rules_without(name))
    expected = attrs.evolve(options.settings, rules=CURRENT)
    assert {finding.code for finding in run(options, expected=expected).findings} >= codes
    assert run(make(seed, DURATION, CURRENT)).is_clean
