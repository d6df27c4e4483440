"""Serve ListGroups, DescribeGroups, ConsumerGroupDescribe, DeleteGroups and OffsetDelete.

Lists and descriptions are read from the coordinator of this broker; deletions are requests to it.

Source: Kafka core KafkaApis; group-coordinator GroupMetadataManager.describeGroups, consumerGroupDescribe and
listGroups, ClassicGroup.validateDeleteGroup; 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, Final

from broker.error_codes import ErrorCode
from broker.group.classic import GroupState
from broker.group.consumer import ConsumerGroup
from broker.group.members import MemberId
from broker.group.messages import DeleteGroupRequest, DeleteGroupResponse, OffsetDeleteRequest, OffsetDeleteResponse
from broker.group.service import GroupService
from broker.ids import PartitionId, TopicPartition
from replication.roles.outbox import Outbox
from replication.testing.gateway import Call, Values, authorized
from replication.testing.groups_api import coordinator_of, service_of
from replication.testing.topics import Topics

_NOT_FOUND_SINCE: Final = 6
"""The version of DescribeGroups since which a group that there is not has an error (KIP-1043)."""
_GROUP_OPERATIONS: Final = 3_400
"""READ, DELETE, DESCRIBE and those of configs, as bits: without ACLs anybody may do all."""
_CONSUMER_MEMBER: Final = 1
_HOST: Final = "/127.0.0.1"


def _kind(service: GroupService) -> str:
    return "consumer" if service.is_consumer_group else "classic"


def _state(service: GroupService) -> str:
    """Return a group's state as Kafka writes it, such as PreparingRebalance."""
    state = service.consumer.group.state if service.is_consumer_group else service.classic.group.state
    return state.name.title().replace("_", "")


def list_groups(call: Call, out: Outbox) -> None:
    """List the groups that this broker coordinates, of the states and types asked for."""
    body = call.request.body
    states = {each.lower() for each in getattr(body, "states_filter", ())}
    types = {each.lower() for each in getattr(body, "types_filter", ())}
    groups = [
        {
            "group_id": group_id,
            "protocol_type": "consumer" if service.is_consumer_group else service.classic.group.protocol_type or "",
            "group_state": _state(service),
            "group_type": _kind(service),
        }
        for shard in coordinator_of(call.gateway).shards.values()
        for group_id, service in sorted(shard.services.items())
        if service.is_known
        and (not states or _state(service).lower() in states)
        and (not types or _kind(service) in types)
    ]
    call.answer({"groups": groups}, out)


def describe_groups(call: Call, out: Outbox) -> None:
    """Describe classic groups."""
    groups = []
    for group_id in call.request.body.groups:
        found = service_of(call.gateway, group_id)
        if isinstance(found, ErrorCode):
            values: dict[str, object] = {"error_code": found}
        elif found is None or found.is_consumer_group:
            values = {"group_state": "Dead"}
            if call.request.version >= _NOT_FOUND_SINCE:
                why = "not found" if found is None else "not a classic group"
                values |= {"error_code": ErrorCode.GROUP_ID_NOT_FOUND, "error_message": f"Group {group_id} is {why}."}
        else:
            values = _described(found)
        shown = {} if values.get("error_code") else authorized(call, _GROUP_OPERATIONS)
        groups.append({"group_id": group_id, **values, **shown})
    call.answer({"groups": groups}, out)


def _described(service: GroupService) -> dict[str, object]:
    """Return a classic group; what its members subscribe to is shown while it is stable."""
    group = service.classic.group
    is_stable = group.state is GroupState.STABLE
    members = [
        {
            "member_id": member.member_id,
            "group_instance_id": member.instance_id,
            "client_id": member.client_id,
            "client_host": member.client_host,
            "member_metadata": member.metadata(group.protocol_name) if is_stable else b"",
            "member_assignment": member.assignment,
        }
        for member in group.ordered()
    ]
    return {
        "group_state": _state(service),
        "protocol_type": group.protocol_type or "",
        "protocol_data": (group.protocol_name or "") if is_stable else "",
        "members": members,
    }


def consumer_group_describe(call: Call, out: Outbox) -> None:
    """Describe consumer groups (KIP-848)."""
    groups = []
    for group_id in call.request.body.group_ids:
        found = service_of(call.gateway, group_id)
        if isinstance(found, ErrorCode):
            values: dict[str, object] = {"error_code": found}
        elif found is None or not found.is_consumer_group:
            why = "not found" if found is None else "not a consumer group"
            values = {"error_code": ErrorCode.GROUP_ID_NOT_FOUND, "error_message": f"Group {group_id} is {why}."}
        else:
            values = {**_described_consumer(call.gateway.topics, found), **authorized(call, _GROUP_OPERATIONS)}
        groups.append({"group_id": group_id, **values})
    call.answer({"groups": groups}, out)


def _described_consumer(topics: Topics, service: GroupService) -> dict[str, object]:
    group = service.consumer.group
    return {
        "group_state": _state(service),
        "group_epoch": group.epoch,
        "assignment_epoch": group.target_epoch,
        "assignor_name": service.consumer.context.assignors[0].name,
        "members": [_member(topics, group, member_id) for member_id in sorted(group.members)],
    }


def _member(topics: Topics, group: ConsumerGroup, member_id: MemberId) -> Values:
    member = group.members[member_id]
    return {
        "member_id": member_id,
        "instance_id": member.instance_id,
        "rack_id": member.rack,
        "member_epoch": member.epoch,
        "client_id": member.client_id,
        "client_host": _HOST,
        "subscribed_topic_names": sorted(member.subscribed_topics),
        "subscribed_topic_regex": "",
        "assignment": {"topic_partitions": _by_topic(topics, member.assigned | member.revoking)},
        "target_assignment": {"topic_partitions": _by_topic(topics, group.target.get(member_id, ()))},
        "member_type": _CONSUMER_MEMBER,
    }


def _by_topic(topics: Topics, partitions: Iterable[TopicPartition]) -> list[Values]:
    listed: list[Values] = []
    for name, each in groupby(sorted(partitions), key=lambda one: one.topic):
        topic = topics.get(name)
        if topic is not None:
            indexes = [one.partition for one in each]
            listed.append({"topic_id": topic.topic_id, "topic_name": name, "partitions": indexes})
    return listed


def delete_groups(call: Call, out: Outbox) -> None:
    """Delete groups that have no members."""
    names: Sequence[str] = call.request.body.groups_names
    errors: dict[str, ErrorCode] = {}

    def gather(group_id: str) -> Callable[[Any, Outbox], None]:
        def take(response: Any, out: Outbox) -> None:
            assert isinstance(response, DeleteGroupResponse), response
            errors[group_id] = response.error
            if len(errors) == len(set(names)):
                results = [{"group_id": each, "error_code": errors[each]} for each in dict.fromkeys(names)]
                call.answer({"results": results}, out)

        return take

    if not names:
        call.answer({}, out)
    for group_id in dict.fromkeys(names):
        call.gateway.ask_group(group_id, DeleteGroupRequest(), gather(group_id), out)


def offset_delete(call: Call, out: Outbox) -> None:
    """Delete committed offsets; a partition that there is not is refused by itself."""
    body, topics = call.request.body, call.gateway.topics
    asked = [(topic.name, each.partition_index) for topic in body.topics for each in topic.partitions]
    known = [place for place in asked if topics.number_of(*place) is not None]

    def answer(response: Any, out: Outbox) -> None:
        assert isinstance(response, OffsetDeleteResponse), response
        if response.error is not ErrorCode.NONE:
            call.answer({"error_code": response.error}, out)
            return
        errors = dict(zip(known, response.errors, strict=True))
        listed = [
            {
                "name": name,
                "partitions": [
                    {
                        "partition_index": index,
                        "error_code": errors.get((name, index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                    }
                    for _, index in places
                ],
            }
            for name, places in groupby(asked, key=lambda place: place[0])
        ]
        call.answer({"topics": listed}, out)

    partitions = tuple(TopicPartition(name, PartitionId(index)) for name, index in known)
    call.gateway.ask_group(body.group_id, OffsetDeleteRequest(partitions), answer, out)
