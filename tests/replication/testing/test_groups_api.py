"""A served cluster describes groups, and refuses members of them, as released Kafka does (4.4.0)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from replication.testing import ClusterSpec
from replication.testing.served_cluster import ServedCluster
from tests.kafka.protocol_draws import ASSIGNMENT, SUBSCRIPTION, VERSIONS
from tests.kafka.protocol_ends import Simulated, ask
from tests.kafka.protocol_run import coordinator

A, B = "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"


@pytest.fixture(scope="module")
def end() -> Iterator[Simulated]:
    served = ServedCluster(ClusterSpec(topics={"t0": 2}))
    served.begin()
    yield Simulated(served)
    assert not served.simulation.findings


def asked(end: Simulated, group: str, name: str, *, place: str = "coordinator", **values: Any) -> Any:
    """Return the response of a group's coordinator to a request of the newest version served."""
    api, _, version = VERSIONS[name]
    return ask(end, coordinator(end, place, group), api, version, values)


def beat(end: Simulated, member: str, epoch: int = 0, *, place: str = "coordinator", **named: Any) -> Any:
    """Return the response to a heartbeat of a member of the consumer group k."""
    values: dict[str, Any] = {"rack_id": None, "instance_id": None, "subscribed_topic_regex": None}
    values |= {"group_id": "k", "member_id": member, "member_epoch": epoch, "server_assignor": None, **named}
    values |= {"rebalance_timeout": -1 if epoch else 60_000, "subscribed_topic_names": None if epoch else ["t0"]}
    values |= {"topic_partitions": None if epoch else []}
    return asked(end, "k", "ConsumerGroupHeartbeat", place=place, **values)


def test_a_member_that_revokes_is_described_with_what_it_gives_back(end: Simulated) -> None:
    first = beat(end, A)
    end.sleep(1_100)  # group.consumer.assignment.interval.ms.
    beat(end, B)
    beat(end, A, first["member_epoch"])
    group = asked(end, "k", "ConsumerGroupDescribe", group_ids=["k"], include_authorized_operations=False)["groups"][0]
    members = {each["member_id"]: each for each in group["members"]}
    assert [each["partitions"] for each in members[A]["assignment"]["topic_partitions"]] == [[0, 1]]
    assert len(members[A]["target_assignment"]["topic_partitions"][0]["partitions"]) == 1
    assert members[B]["assignment"]["topic_partitions"] == []


@pytest.mark.parametrize("place", ["coordinator", "other"])
def test_every_broker_refuses_an_unknown_assignor(end: Simulated, place: str) -> None:
    assert beat(end, A, place=place, server_assignor="nobody")["error_code"] == "unsupported_assignor"
    assert beat(end, "", 3, place=place, server_assignor="nobody")["error_code"] == "invalid_request"


def test_a_group_that_rebalances_is_described_with_its_last_assignment(end: Simulated) -> None:
    protocols = [{"name": "range", "metadata": SUBSCRIPTION}]
    timeouts: dict[str, Any] = {
        "session_timeout": 60_000,
        "rebalance_timeout": 60_000,
        "group_instance_id": "i",
        "reason": None,
    }
    joining: dict[str, Any] = {"group_id": "c", "protocol_type": "consumer", "protocols": protocols, **timeouts}
    member = asked(end, "c", "JoinGroup", member_id="", **joining)["member_id"]
    share = {"member_id": member, "assignment": ASSIGNMENT}
    named: dict[str, Any] = {"protocol_type": "consumer", "protocol_name": "range", "group_instance_id": "i"}
    asked(end, "c", "SyncGroup", group_id="c", generation_id=1, member_id=member, assignments=[share], **named)
    asked(end, "c", "JoinGroup", member_id=member, **joining)
    group = asked(end, "c", "DescribeGroups", groups=["c"], include_authorized_operations=False)["groups"][0]
    assert group["group_state"] == "CompletingRebalance"
    assert [(each["member_assignment"], each["member_metadata"]) for each in group["members"]] == [(ASSIGNMENT, b"")]


def test_a_stranger_of_a_group_that_there_is_not_is_unknown(end: Simulated) -> None:
    values: dict[str, Any] = {
        "session_timeout": 60_000,
        "rebalance_timeout": 60_000,
        "group_instance_id": None,
        "reason": None,
    }
    values |= {"group_id": "new", "protocol_type": "consumer", "protocols": [], "member_id": str(UUID(int=7))}
    assert asked(end, "new", "JoinGroup", **values)["error_code"] == "unknown_member_id"
