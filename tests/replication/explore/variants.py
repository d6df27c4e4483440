"""Known variants of the rules, and the depth at which the search must find each one's violation.

`python -m tests.replication.explore.variants [--full]` searches them all, with --full also those that take minutes. The
depths were measured before with models of the same specifications; `note` explains each difference.

Source: hachikuji/kafka-specification d68782b (2020-01) for the truncation variants, KIP-966 and
Vanlightly/kafka-tlaplus 823615e8 (2025-01) for the others.
"""

from __future__ import annotations

import sys
from typing import Final

import attrs

from replication.explore import ElrModel, ElrScope, TruncationModel, TruncationScope, search
from replication.explore.search import Model
from replication.rules.switches import CURRENT, Rules, rules_of, without


@attrs.frozen
class Variant:
    """Describe one variant; `depth` is the number of steps to the violation, None if there is no violation."""

    name: str
    scope: TruncationScope | ElrScope
    rules: Rules
    depth: int | None
    note: str = ""

    def model(self) -> Model:
        """Return a new model of this variant."""
        if isinstance(self.scope, TruncationScope):
            return TruncationModel(self.scope, self.rules)
        return ElrModel(self.scope, self.rules)


KIP_320: Final = rules_of("2.1")
"""Truncation by OffsetsForLeaderEpoch with fencing, as in Kafka 2.1 to 2.7."""

FIRST_TRY: Final = without(CURRENT, "fetch_epoch_check", "high_watermark_epoch_check", "isr_join_epoch_check")
"""The first design of KIP-320: each fetch compares the logs, but does not carry the follower's leader epoch."""

_TWO: Final = TruncationScope(replicas=2)
_THREE: Final = TruncationScope()
_UNCLEAN: Final = TruncationScope(unclean_election=True)
_ELR: Final = ElrScope()

VARIANTS: Final = (
    Variant("hw, 2 replicas", _TWO, rules_of("0.10.2"), 9),
    Variant("hw", _THREE, rules_of("0.10.2"), 8),
    Variant("kip101, 2 replicas", _TWO, rules_of("0.11"), 11),
    Variant("kip101", _THREE, rules_of("0.11"), 10),
    Variant(
        "kip279, 2 replicas",
        _TWO,
        rules_of("2.0"),
        11,
        "the specification compares whole logs and holds; Kafka 2.0 asks a leader that knows no later epoch, gets "
        "no answer, and cuts at the high watermark",
    ),
    Variant("kip279", _THREE, rules_of("2.0"), 10),
    Variant("kip320, first try", _THREE, FIRST_TRY, 12),
    Variant("kip320 without isr_join_epoch_start", _THREE, without(KIP_320, "isr_join_epoch_start"), 11),
    Variant(
        "kip320 without truncation_epoch_check",
        _THREE,
        without(KIP_320, "truncation_epoch_check"),
        11,
        "13 in the specification, which compares whole logs; here a follower that led an epoch without records asks "
        "about it, gets no answer from a leader that knows no later epoch, and cuts at the high watermark",
    ),
    Variant("kip320 without high_watermark_epoch_check", _THREE, without(KIP_320, "high_watermark_epoch_check"), 12),
    Variant("kip320 without isr_join_epoch_check", _THREE, without(KIP_320, "isr_join_epoch_check"), 14),
    Variant("kip320 without isr_write_epoch_check", _THREE, without(KIP_320, "isr_write_epoch_check"), 8),
    Variant(
        "kip320 without fetch_epoch_check",
        _THREE,
        without(KIP_320, "fetch_epoch_check"),
        13,
        "holds in the specification, where every follower waits for its leader to know the epoch; in Kafka one with an "
        "empty log has nothing to ask and fetches at once",
    ),
    Variant("kip320 with unclean election", _UNCLEAN, KIP_320, 8),
    Variant("no ELR, high watermark of 3.6", _ELR, without(CURRENT, "elr", "strict_min_isr"), 6),
    Variant("no ELR", _ELR, without(CURRENT, "elr"), 8),
    Variant("ELR, high watermark of 3.6", _ELR, without(CURRENT, "strict_min_isr"), 5),
    Variant("without isr_join_broker_epoch", _ELR, without(CURRENT, "isr_join_broker_epoch"), 10),
    Variant("without elr_excludes_unclean", _ELR, without(CURRENT, "elr_excludes_unclean"), 8),
    Variant("without maximal_isr", ElrScope(losses=0), without(CURRENT, "maximal_isr"), 9),
    Variant(
        "without isr_join_epoch_start",
        ElrScope(records=2, losses=0),
        without(CURRENT, "isr_join_epoch_start"),
        12,
        "13 where it was measured first; here a fetch at once tells how far a follower is and takes the next record",
    ),
    Variant("two lossy restarts", ElrScope(losses=2), CURRENT, 9),
)
"""The variants whose search ends within seconds."""

FULL: Final = (
    Variant("kip320", _THREE, KIP_320, None),
    Variant("current, truncation", _THREE, CURRENT, None),
    Variant("current, ELR", _ELR, CURRENT, None),
    Variant("current, ELR, 2 records", ElrScope(records=2), CURRENT, None),
)
"""The variants whose search takes minutes: the full bounds of the rules without a violation."""


def main(arguments: list[str]) -> int:
    """Print the outcome of each variant beside the expected one; return 1 if any differs."""
    differing = 0
    for variant in VARIANTS + FULL if "--full" in arguments else VARIANTS:
        outcome = search(variant.model())
        found = None if outcome.holds else outcome.depth
        differing += found != variant.depth
        print(f"{variant.name:<46} {found or 'holds'} ({variant.depth or 'holds'}), {outcome.state_count:,} states")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
