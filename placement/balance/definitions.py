"""Define each measure and state in the words that reports print: formula, unit, range, optimum and source.

x are the shares, n the groups, T their sum, fenced brokers and what they hold left out; best is the most even spread
that can be reached (placement/balance/reachable.py), low and high what it gives a group.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs


@attrs.frozen
class Definition:
    """Define each measure and state in the words that reports print."""

    name: str
    formula: str
    unit: str
    range: str
    optimum: str
    source: str


_OURS: Final = "placement.balance.measures"
_BEST: Final = "placement.balance.reachable"
_KAFKA: Final = "kafka-topics --describe, Kafka 4.0"
_UNIT: Final = "replicas, leaders or bytes"
_STATE_RANGE: Final = "0 to all partitions; unknown when the input does not say"


def _table(*definitions: Definition) -> Mapping[str, Definition]:
    return MappingProxyType({definition.name: definition for definition in definitions})


MEASURES: Final = _table(
    Definition("group_count", "n, groups that hold nothing included, fenced brokers not", "brokers, racks or topics",
               "0 and up", "none", _OURS),
    Definition("total", "T = Σ x", _UNIT, "0 and up", "none", _OURS),
    Definition("min", "least x", _UNIT, "0 to mean", "low of the lowest block", _OURS),
    Definition("mean", "T / n", _UNIT, "0 and up", "none", _OURS),
    Definition("max", "largest x", _UNIT, "mean to T", "largest x of best", _OURS),
    Definition("max_group", "the group whose x is the largest, the first of equals", "name", "a group", "none", _OURS),
    Definition("max_over_mean", "max / mean; 1 when T is 0", "times", "1 to n", "best_max_over_mean", _OURS),
    Definition("stdev", "sqrt(Σ (x - mean)² / n)", _UNIT, "0 to mean · sqrt(n - 1)", "best_stdev", _OURS),
    Definition("cv", "stdev / mean; 0 when T is 0", "1", "0 to sqrt(n - 1)", "best_cv", _OURS),
    Definition("gini", "Σ |x_i - x_j| over all ordered pairs / (2 n T); 0 when T is 0", "1", "0 to 1 - 1/n",
               "best_gini", _OURS),
    Definition("moves", "Σ over blocks of max(Σ max(x - high, 0), Σ max(low - x, 0) + Σ x - units of the block): no "
               "fewer units move until the spread is at its best; 0 when it is, or is more even by breaking the rack "
               "rule; none over topics", _UNIT, "0 to T", "0", _OURS),
    Definition("moves_share", "moves / T; 0 when T is 0", "1", "0 to 1 - 1/n", "0", _OURS),
    Definition("best_max_over_mean", "max_over_mean of best", "times", "1 to n", "itself", _BEST),
    Definition("best_stdev", "stdev of best", _UNIT, "0 to mean · sqrt(n - 1)", "itself", _BEST),
    Definition("best_cv", "cv of best", "1", "0 to sqrt(n - 1)", "itself", _BEST),
    Definition("best_gini", "gini of best", "1", "0 to 1 - 1/n", "itself", _BEST),
    Definition("moves_exact", "whether that many moves are enough, without breaking the rack rule; otherwise they are "
               "a lower bound, as always for bytes", "yes or no", "none over topics", "none", _OURS),
)  # fmt: skip
"""The measures, by their column's name, in the order of the table of measures."""

STATES: Final = _table(
    Definition("leaderless", "leader is none", "partitions", _STATE_RANGE, "0", _KAFKA + " --unavailable-partitions"),
    Definition("sole_copy", "led and under-replicated, and one live broker is all that ISR and ELR have", "partitions",
               _STATE_RANGE, "0", "ours; the loss of that broker too loses records"),
    Definition("under_min_isr", "no leader, or ISR size < min.insync.replicas", "partitions", _STATE_RANGE, "0",
               _KAFKA + " --under-min-isr-partitions"),
    Definition("at_min_isr", "ISR size = min.insync.replicas", "partitions", _STATE_RANGE, "0",
               _KAFKA + " --at-min-isr-partitions"),
    Definition("under_replicated", "ISR size < number of replicas, those being added and observers not counted on "
               "either side", "partitions", _STATE_RANGE, "0", _KAFKA + " --under-replicated-partitions"),
    Definition("not_preferred_leader", "leader is not the first replica; leaderless partitions not counted",
               "partitions", _STATE_RANGE, "0",
               "ours; Kafka's PreferredReplicaImbalanceCount counts leaderless ones too"),
    Definition("fewer_racks", "distinct racks < min(replicas on brokers with a rack, racks of the cluster)",
               "partitions", _STATE_RANGE, "0", "placement.balance.constraints, rack-spread"),
)  # fmt: skip
"""The states a partition can be in that someone should look at, by name."""

DEFINITIONS: Final = (*MEASURES.values(), *STATES.values())
"""Every definition, in the order a report prints them."""
