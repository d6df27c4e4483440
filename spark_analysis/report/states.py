"""List the states that a partition should not be in, and name a cluster's worst finding in words.

What it decides: the order of urgency. A partition without a leader serves nobody now; one with a sole live copy
loses records with one broker more; one under min-ISR refuses writes of acks=all; one at min-ISR will after the next
loss; and so on. After the states come skews: the one first that needs the largest share of its quantity to move, if it
is more than the tolerance, 1 % unless the user gives another. Only what can be reached without breaking the rack rule
is held against a cluster, and a number of moves that may not be enough is called "at least".

Source: the names are those of `kafka-topics --describe` and of Kafka's own metrics (OfflinePartitionsCount,
UnderMinIsrPartitionCount, AtMinIsrPartitionCount, UnderReplicatedPartitions, PreferredReplicaImbalanceCount), 4.0.
"""

from __future__ import annotations

from typing import Final

import attrs

from placement.balance.measures import TOLERANCE
from placement.balance.out_of_sync import brokers_in_words
from spark_analysis.report.figures import count, decimal, quantity
from spark_analysis.report.model import QUANTITIES, Spreads
from spark_analysis.report.rows import ClusterFacts, Spread


@attrs.frozen
class State:
    """Define a state that partitions can be in; `field` is its column in the table of clusters.

    One that is no `alarm` is counted without the accent colour.
    """

    field: str
    title: str
    short: str
    one: str
    many: str
    alarm: bool = True

    @property
    def key(self) -> str:
        """Return the name of the state in identifiers, and of its constraint in the table of violations."""
        return self.field.removesuffix("_count")

    def names(self, constraint: str) -> bool:
        """Return whether `constraint`, a name in the table of violations, is this state, in any spelling."""
        plain = constraint.lower().replace("-", "_").replace(" ", "_")
        return plain == self.key or plain in _ALIASES.get(self.key, ())

    def of(self, facts: ClusterFacts) -> int | None:
        """Return how many partitions of a cluster are in this state; None if the input does not show it."""
        found: int | None = getattr(facts, self.field)
        return found

    def sentence(self, found: int) -> str:
        """Return a count of partitions with the verb of this state, such as "3 partitions have no leader"."""
        return f"1 partition {self.one}" if found == 1 else f"{count(found)} partitions {self.many}"


SIMULATED: Final = "simulated"  # The format of clusters that no dump describes, as the table of clusters says.

_ALIASES: Final = {"fewer_racks": ("rack_spread",)}

STATES: Final = (
    State("leaderless_count", "without a leader", "no leader", "has no leader", "have no leader"),
    State(
        "sole_copy_count",
        "with a sole live copy",
        "sole copy",
        "has a sole live copy, one broker from loss",
        "have a sole live copy, one broker from loss",
    ),
    State("under_min_isr_count", "under min-ISR", "under min-ISR", "is under min-ISR", "are under min-ISR"),
    # A topic whose factor is its min.insync.replicas is always here: a fact about its settings, no alarm.
    State("at_min_isr_count", "at min-ISR", "at min-ISR", "is at min-ISR", "are at min-ISR", alarm=False),
    State(
        "under_replicated_count", "under-replicated", "under-replicated", "is under-replicated", "are under-replicated"
    ),
    State(
        "fewer_racks_count",
        "on fewer racks than possible",
        "fewer racks",
        "stands on fewer racks than possible",
        "stand on fewer racks than possible",
    ),
    State(
        "not_preferred_leader_count",
        "not led by their preferred replica",
        "not preferred leader",
        "is not led by its preferred replica",
        "are not led by their preferred replica",
    ),
)

# A state comes before any skew; being at min-ISR or led by another replica is worth a word only after skews.
_URGENT: Final = ("leaderless", "sole_copy", "under_min_isr", "under_replicated", "fewer_racks")
_OF_ISR: Final = ("leaderless", "sole_copy", "under_min_isr", "under_replicated")
_BEST_WORTH_A_WORD: Final = 1.1  # From here on, some broker has more than an equal share even at best.
_VERBS: Final = {
    "replicas": "holds {} times its share of replicas",
    "leaders": "leads {} times its share",
    "bytes": "holds {} times its share of bytes",
}


def worst_in_words(facts: ClusterFacts, spreads: Spreads, tolerance: float = TOLERANCE) -> str | None:
    """Return the most urgent finding about a cluster in one sentence; None without a finding."""
    for state in STATES:
        found = state.of(facts)
        if state.key in _URGENT and found:
            cause = cause_in_words(facts, of_them=state.key == "under_replicated")
            return state.sentence(found) + (f"; {cause}" if state.key in _OF_ISR and cause else "")
    skew = most_skewed(spreads, tolerance)
    if skew is not None:
        return skew_in_words(skew)
    for state in STATES:
        found = state.of(facts)
        if found:
            return state.sentence(found)
    return None


def cause_in_words(facts: ClusterFacts, *, of_them: bool = False) -> str | None:
    """Return which brokers explain the under-replicated partitions; None where few brokers explain few of them.

    "broker 4 explains 118 of 120 under-replicated": 118 of them miss no other replica. With `of_them` they
    were spoken of just before.
    """
    brokers, explained = facts.out_of_sync_brokers, facts.out_of_sync_explained_count
    total = facts.under_replicated_count
    if not brokers or not explained or not total or 2 * explained < total:
        return None
    verb = "explains" if len(brokers) == 1 else "explain"
    if of_them:
        them = "it" if total == 1 else f"{'all' if explained == total else count(explained)} of them"
    elif explained == total:
        them = "the only under-replicated one" if total == 1 else f"all {count(total)} under-replicated"
    else:
        them = f"{count(explained)} of {count(total)} under-replicated"
    return f"{brokers_in_words(sorted(brokers))} {verb} {them}"


def healthy_in_words(facts: ClusterFacts, spreads: Spreads, tolerance: float = TOLERANCE) -> str:
    """Return the sentence about a cluster without a finding; it praises the cluster only when every state is known."""
    known = facts.format == SIMULATED or all(state.of(facts) is not None for state in STATES)
    if not known or facts.replica_count is None:
        return "nothing that the input shows"
    return "nothing: as even as it can be" if is_at_best(spreads) else f"nothing: {nearly_even(tolerance)}"


def is_at_best(spreads: Spreads) -> bool:
    """Return whether nothing at all has to move between the brokers, as far as the input says."""
    return not any(spread.moves for name in QUANTITIES if (spread := spreads.of(name)) is not None)


def nearly_even(tolerance: float) -> str:
    """Return what is said of a cluster in which no more than the tolerated share has to move."""
    return f"within {100 * tolerance:g} % of the best possible"


def is_uneven(spread: Spread | None, tolerance: float = TOLERANCE) -> bool:
    """Return whether more than the tolerated share of a quantity, 0 to 1, has to move."""
    return spread is not None and (spread.moves_share or 0.0) > tolerance


def most_skewed(spreads: Spreads, tolerance: float = TOLERANCE) -> Spread | None:
    """Return the spread over brokers furthest from its optimum, the first of equals; None if all are near it."""
    worst: Spread | None = None
    for name in QUANTITIES:
        spread = spreads.of(name)
        if spread is not None and is_uneven(spread, tolerance) and (worst is None or _share(spread) > _share(worst)):
            worst = spread
    return worst


def _share(spread: Spread) -> float:
    return spread.moves_share or 0.0


def skew_in_words(spread: Spread) -> str:
    """Return the skew of a spread, such as "broker 7 leads 2.1 times its share; moving 14 leaders would even it out".

    Where so many moves may not be enough: "evening it out moves at least 14 leaders".
    """
    moved = quantity(spread.moves, spread.quantity)
    if spread.quantity != "bytes":
        moved += f" {spread.quantity[:-1] if spread.moves == 1 else spread.quantity}"
    remedy = f"moving {moved} would even it out" if spread.moves_exact else f"evening it out moves at least {moved}"
    if spread.max_over_mean <= spread.best_max_over_mean:
        return f"some brokers have too few {spread.quantity}; {remedy}"
    best = spread.best_max_over_mean
    places = 1 if spread.max_over_mean >= 1.1 and spread.max_over_mean - best >= 0.1 else 2
    said = f"broker {spread.max_group} {_VERBS[spread.quantity].format(decimal(spread.max_over_mean, places))}"
    if best >= _BEST_WORTH_A_WORD:
        said += f" where {decimal(best, places)} is the best"
    return f"{said}; {remedy}"
