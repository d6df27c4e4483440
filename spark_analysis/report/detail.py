"""Text of the page about one cluster, beside its tables: facts, cause, spreads, racks, violations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from broker.cluster import BROKER_FLAGS
from placement.balance.out_of_sync import brokers_in_words
from spark_analysis.report.broker_chart import load_of
from spark_analysis.report.figures import count, decimal, plural, quantity
from spark_analysis.report.model import QUANTITIES, SCOPES, ClusterDetail, ShortenedList
from spark_analysis.report.rows import BrokerLoad, ClusterFacts, RackLoad, Spread, Violation
from spark_analysis.report.states import STATES, cause_in_words
from spark_analysis.tables.limits import VIOLATIONS_MAX

__all__ = (
    "broker_sizes",
    "brokers_in_racks",
    "by_urgency",
    "cause_of",
    "facts_of",
    "in_order",
    "loads_known",
    "mean",
    "rack_heads",
    "total_load",
    "violation_count",
)


def facts_of(detail: ClusterDetail) -> list[str]:
    """Return the sizes of a cluster, and the brokers in a state of their own."""
    facts = detail.row.facts
    racks = plural(facts.rack_count, "rack") if facts.rack_count else "racks not known"
    if facts.rack_count and facts.rack_broker_count_min != facts.rack_broker_count_max:
        racks += f" of {count(facts.rack_broker_count_min)} to {count(facts.rack_broker_count_max)} brokers"
    parts = [plural(facts.broker_count, "broker"), racks]
    if facts.rack_count and facts.unracked_broker_count:
        parts.append(f"{count(facts.unracked_broker_count)} without a rack")
    if facts.fenced_broker_count:
        parts.append(f"{count(facts.fenced_broker_count)} fenced")
    for flag in BROKER_FLAGS[1:]:
        found = [broker.broker_id for broker in detail.brokers if getattr(broker, flag)]
        if found:
            parts.append(f"{brokers_in_words(found)} {flag.replace('_', ' ')}")
    for noun in ("topic", "partition", "replica"):
        value = getattr(facts, f"{noun}_count")
        parts.append(f"{noun}s not in the dump" if value is None else plural(value, noun))
    if facts.size_bytes is not None:
        parts.append(quantity(facts.size_bytes, "bytes"))
    return parts


def cause_of(detail: ClusterDetail) -> str | None:
    """Return the sentence that names who explains a cluster's under-replicated partitions; None without any."""
    cause = cause_in_words(detail.row.facts)
    if cause is None:
        return None
    named = detail.row.facts.out_of_sync_brokers or ()
    racks = {broker.rack for broker in detail.brokers if broker.broker_id in named}
    place = f" All are in rack {next(iter(racks))}." if len(racks) == 1 and len(named) > 1 and None not in racks else ""
    return f"{cause[0].upper()}{cause[1:]}.{place}"


def in_order(spreads: Iterable[Spread]) -> list[Spread]:
    """Return the spreads over brokers first, then over racks and topics."""
    return sorted(spreads, key=lambda spread: (SCOPES.index(spread.scope), QUANTITIES.index(spread.quantity)))


def mean(value: float | None, unit: str) -> str:
    """Return a mean or a deviation."""
    return quantity(value, unit) if unit == "bytes" else decimal(value, 1)


def loads_known(holders: Sequence[BrokerLoad | RackLoad]) -> list[str]:
    """Return the quantities that the input shows of some of the brokers or racks."""
    return [name for name in QUANTITIES if any(load_of(holder, name) is not None for holder in holders)]


def total_load(holders: Iterable[BrokerLoad | RackLoad], name: str) -> int:
    """Return the sum of a quantity."""
    return sum(load_of(holder, name) or 0 for holder in holders)


def rack_heads(known: Iterable[str]) -> str:
    """Return the heads of the table of racks."""
    return "rack|#brokers|#share of brokers" + "".join(f"|#{name}|#share of {name}" for name in known)


def broker_sizes(detail: ClusterDetail) -> dict[int, int | None]:
    """Return the bytes of each broker."""
    return {broker.broker_id: broker.size_bytes for broker in detail.brokers}


def brokers_in_racks(brokers: Sequence[int], racks: Sequence[str]) -> str:
    """Return brokers with their racks; a broker with an unknown rack stands alone.

    >>> brokers_in_racks([1, 3, 4], ["west", "east", ""])
    '1 (west), 3 (east), 4'
    """
    names = [*racks, *([""] * (len(brokers) - len(racks)))]
    return ", ".join(
        f"{broker} ({rack})" if rack else str(broker) for broker, rack in zip(brokers, names, strict=False)
    )


def by_urgency(violations: Iterable[ShortenedList[Violation]]) -> list[ShortenedList[Violation]]:
    """Return broken rules of placement first, then states by urgency."""

    def urgency(kept: ShortenedList[Violation]) -> tuple[int, str]:
        name = kept.rows[0].constraint
        return next((place for place, state in enumerate(STATES) if state.names(name)), -1), name

    return sorted(violations, key=urgency)


def violation_count(kept: ShortenedList[Violation], facts: ClusterFacts) -> tuple[int, bool]:
    """Return how many partitions of a cluster break a constraint, and whether there may be more than that."""
    of_state = [state.of(facts) for state in STATES if state.names(kept.rows[0].constraint)]
    whole = max([kept.count, *(found for found in of_state if found is not None)])
    return whole, whole == kept.count >= VIOLATIONS_MAX and not of_state
