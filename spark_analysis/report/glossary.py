"""Define the words of the page, and the titles of the measures that `placement.balance.definitions` defines."""

from __future__ import annotations

from typing import Final

from spark_analysis.report.states import STATES

__all__ = ("TITLES", "WORDS")

WORDS: Final = (
    ("replicas", "how many replicas a broker, a rack or a topic holds"),
    ("leaders", "how many partitions are led there; where the input does not say, the first replica of each "
                "partition is taken to lead"),
    ("bytes", "the bytes of the replicas held there, where the input gives sizes"),
    ("share of a broker", "the mean: total divided by brokers, those that hold nothing included, fenced ones not"),
    ("best possible", "the most even load of the unfenced brokers that can be reached: whole replicas, at most one of "
                      "a partition on a broker, each partition on as many racks as it can be (a broker without a rack "
                      "counts as a rack); fenced brokers keep what they hold and get nothing new, cordoned ones get "
                      "nothing new. Without uneven racks "
                      "it is the floor or the ceiling of the mean. For bytes it is a bound: partitions move whole"),
    ("accent", "what is more than the tolerance over its best, or needs more than that share to move; the tolerance is "
               "{tolerance:g} %"),
    ("rank", "clusters with the most urgent state first, then by the share of what must move"),
    ("placement", "one cluster as placed by one placer"),
    ("least plan", "the reassignment that reaches its goal with the fewest replicas that move, then the fewest leaders "
                   "that change; in brackets what any plan needs at least, which brokerside plan --check proves again"),
    ("balance, leaders only, racks only", "goals of plans: loads as even as can be; the same by reordering replicas, "
                                          "which copies nothing; every partition on as many racks as it can be, other "
                                          "replicas where they are"),
    ("gains", "measures before and after a plan, which keeps the rack rule or restores it: where partitions are on "
              "fewer racks than possible, or a measure is marked ≥, it may move more than the measure says; even bytes "
              "brings every broker within {bytes_tolerance} % of the bytes that racks let it reach"),
    ("worst outage", "the loss of one broker, or of one rack, that leaves most partitions at risk; of equals, most "
                     "leaderless, then most under min-ISR"),
    ("at risk", "no live replica of the partition has every committed record"),
    ("failover concentration", "the largest share of the leaders of what is lost that one broker takes over; at "
                               "least 1 / brokers that are left"),
    ("restart batches", "brokers that restart together, one batch after the other, each once all replicas are in sync "
                        "again; no partition falls under min.insync.replicas"),
)  # fmt: skip


TITLES: Final = {
    "group_count": "groups",
    "min": "least",
    "max": "most",
    "max_group": "held by",
    "max_over_mean": "most / mean",
    "cv": "CV",
    "gini": "Gini",
    "moves": "to move",
    "moves_share": "share to move",
    "best_max_over_mean": "most / mean, best",
    "best_stdev": "stdev, best",
    "best_cv": "CV, best",
    "best_gini": "Gini, best",
    "moves_exact": "moves are enough",
} | {state.key: state.title for state in STATES}
