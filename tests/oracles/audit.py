"""Audits of one cluster, one partition at a time, with sets and counters."""

from __future__ import annotations

from broker.cluster import ClusterView, Int32Array


def rows_of(matrix: Int32Array) -> list[list[int]]:
    """Rows of a padded matrix as lists without the pads."""
    return [[number for number in row if number >= 0] for row in matrix.tolist()]


def fewer_racks(view: ClusterView) -> list[int]:
    """Partitions whose racked replicas stand on fewer racks than they could."""
    racks: dict[int, str | None] = {broker.id: broker.rack for broker in view.brokers}
    rack_count = len({rack for rack in racks.values() if rack is not None})
    found = []
    for index, row in enumerate(rows_of(view.partitions.replicas)):
        used = [racks[number] for number in row if racks[number] is not None]
        if len(set(used)) < min(len(used), rack_count):
            found.append(index)
    return found


def states(view: ClusterView, default: int | None) -> dict[str, list[int]]:
    """Rows in each state, judged one by one; leader and ISR must be known."""
    table = view.partitions
    assert table.leader is not None
    assert table.isr is not None
    found: dict[str, list[int]] = {
        name: []
        for name in (
            "leaderless",
            "sole_copy",
            "under_min_isr",
            "at_min_isr",
            "under_replicated",
            "not_preferred_leader",
        )
    }
    facts = zip(table.leader.tolist(), rows_of(table.isr), rows_of(table.replicas), strict=True)
    for index, (leader, isr, replicas) in enumerate(facts):
        shown = view.topics[table.topic_index[index]].min_insync_replicas
        least = default if shown is None else shown
        if leader == -1:
            found["leaderless"].append(index)
        if leader != -1 and len(isr) < len(replicas) and len(set(isr) - set(view.down)) == 1:
            found["sole_copy"].append(index)
        if least is not None and (leader == -1 or len(isr) < least):
            found["under_min_isr"].append(index)
        if least is not None and len(isr) == least:
            found["at_min_isr"].append(index)
        if len(isr) < len(replicas):
            found["under_replicated"].append(index)
        if leader not in (-1, replicas[0]):
            found["not_preferred_leader"].append(index)
    return found
