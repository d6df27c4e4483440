"""Partition changes as Kafka's own controller makes them: what its released classes printed, row by row."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from broker.ids import BrokerId, LeaderEpoch
from replication.rules.election import Election
from replication.rules.partition import PartitionEpoch, PartitionState
from replication.rules.partition_change import Target, change
from replication.rules.reassign import Phase
from replication.rules.switches import rules_of
from tests.replication.builders import ids, on, settings

ROWS = tuple(
    line
    for line in Path(__file__).with_name("kafka_partition_changes.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)
RULES = rules_of("4.1")  # Of the classes that printed the rows.
REPLICA_COUNT = 99  # Kafka's builder is given the min ISR as it is; nothing bounds it here either.


def brokers(text: str) -> tuple[BrokerId, ...]:
    return ids(*(int(number) for number in text.split(","))) if text else ()


def state_of(fields: list[str]) -> PartitionState:
    replicas, isr, leader, elr, last_known, adding, removing, recovering = fields[:8]
    return PartitionState(
        replicas=brokers(replicas),
        isr=brokers(isr),
        leader=BrokerId(int(leader)),
        leader_epoch=LeaderEpoch(int(fields[8]) if len(fields) > 8 else 5),
        partition_epoch=PartitionEpoch(int(fields[9]) if len(fields) > 8 else 7),
        elr=brokers(elr),
        last_known=brokers(last_known),
        adding=brokers(adding),
        removing=brokers(removing),
        recovering=recovering == "1",
    )


@pytest.mark.parametrize("start", range(0, len(ROWS), 50))
def test_fifty_changes_are_kafkas(start: int) -> None:
    for row in ROWS[start : start + 50]:
        before, asked, after = (part.split("|") for part in row.split(" > "))
        state = state_of(before)
        isr, election, unclean, acceptable, min_isr, elr, replicas, renewed, adding, removing = asked
        sets = (brokers(adding), brokers(removing)) if renewed == "1" else (state.adding, state.removing)
        target = Target(
            phase=Phase(
                replicas=brokers(replicas) or state.replicas, isr=brokers(isr), adding=sets[0], removing=sets[1]
            ),
            election=Election[election],
            recovering=state.recovering,
            unclean=brokers(unclean),
        )
        under = settings(on(RULES, elr=elr == "1"), min_isr=int(min_isr))
        under = attrs.evolve(under, topic_replica_count=REPLICA_COUNT)
        following = change(state, target, frozenset(brokers(acceptable)), under)
        assert following == (None if after == ["none"] else state_of(after)), row


def test_the_rows_are_of_every_kind() -> None:
    outcomes = [row.rsplit(" > ", 1)[1] for row in ROWS]
    assert len(ROWS) > 400
    assert 20 < outcomes.count("none") < 200
    assert len({attrs.astuple(state_of(text.split("|")))[2] for text in outcomes if text != "none"}) == 6
