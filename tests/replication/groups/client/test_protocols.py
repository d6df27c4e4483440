"""Which assignors each protocol of a group takes, and which client speaks it."""

from __future__ import annotations

import pytest

from broker.entropy import SplitMix64
from replication.groups.client.assigning import GroupProtocol, takes
from replication.groups.client.classic_client import ClassicClient
from replication.groups.client.consumer_client import ConsumerClient
from replication.groups.member import new_client
from tests.replication.groups.client.script import Ten, named


@pytest.mark.parametrize(
    ("assignor", "protocols"),
    [
        ("range", {GroupProtocol.EAGER}),
        ("sticky", {GroupProtocol.EAGER}),
        ("cooperative-sticky", {GroupProtocol.COOPERATIVE}),
        ("uniform", {GroupProtocol.CONSUMER}),
        ("server-range", {GroupProtocol.CONSUMER}),
        ("random", {GroupProtocol.EAGER, GroupProtocol.CONSUMER}),
    ],
)
def test_an_assignor_is_of_the_protocols_that_kafka_has_it_for(assignor: str, protocols: set[GroupProtocol]) -> None:
    """partition.assignment.strategy and group.consumer.assignors; what is not Kafka's own may be either's."""
    assert {each for each in GroupProtocol if takes(each, assignor)} == protocols


def test_a_client_speaks_the_protocol_of_its_group() -> None:
    clients = {
        each: type(new_client(named("cooperative-sticky"), each, Ten(), SplitMix64(1))) for each in GroupProtocol
    }
    assert clients == {
        GroupProtocol.EAGER: ClassicClient,
        GroupProtocol.COOPERATIVE: ClassicClient,
        GroupProtocol.CONSUMER: ConsumerClient,
    }
