"""Serve the requests of consumer groups, classic and KIP-848: translate them for the broker's group coordinator.

Source: Kafka core KafkaApis and group-coordinator GroupCoordinatorService; 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from broker.error_codes import ErrorCode
from broker.group.classic import (
    ClassicOptions,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    Protocol,
    SyncGroupRequest,
    SyncGroupResponse,
    Ticket,
)
from broker.group.consumer import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from broker.group.consumer.heartbeats import request_error
from broker.group.members import InstanceId, MemberId
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse
from broker.group.offsets import Commit
from broker.group.records import CommittedOffset
from broker.group.service import GroupService
from broker.ids import NO_LEADER, LeaderEpoch, Offset, PartitionId, TopicPartition
from replication.groups.hosted_coordinator import HostedCoordinator
from replication.roles.outbox import Outbox
from replication.testing.gateway import Call, Gateway, Values, in_ms
from replication.testing.topics import OFFSETS_TOPIC

NO_MIGRATION: Final = "group.consumer.migration.policy=disabled"
"""A group with members refuses a member of the other protocol, as Kafka does under this policy (KIP-848)."""
_OPTIONS: Final = ClassicOptions()
_NO_TICKET: Final = Ticket(0)
_GROUP: Final = 0
_TRANSACTION: Final = 1
_KNOWS_TWO_STEPS_SINCE: Final = 4
"""The version of JoinGroup since which a member rejoins with the id that it was given (KIP-394)."""
_SKIPS_ASSIGNMENT_SINCE: Final = 9
"""The version of JoinGroup since which a static leader need not assign (KIP-814)."""
_NULL_PROTOCOL_SINCE: Final = 7
"""The version of JoinGroup since which a response without a protocol has null for its name."""
_NAMED_SINCE: Final = 5
"""The version of SyncGroup since which a request names protocol type and name (KIP-559)."""
_UNKNOWN_GROUP_SINCE: Final = 9
"""The version of OffsetCommit since which a generation of no group is GROUP_ID_NOT_FOUND."""
_WHOLE_ERROR_SINCE: Final = 2
"""The version of OffsetFetch since which an error is that of the group, not of each partition."""
_SEVERAL_KEYS_SINCE: Final = 4
"""The version of FindCoordinator since which it names several keys (KIP-699)."""
_SEVERAL_MEMBERS_SINCE: Final = 3
"""The version of LeaveGroup since which it names several members (KIP-345)."""
_SEVERAL_GROUPS_SINCE: Final = 8
"""The version of OffsetFetch since which it names several groups (KIP-709)."""


def find_coordinator(call: Call, out: Outbox) -> None:
    """Name the broker that leads the group's partition of `__consumer_offsets`; transactions have none here."""
    body = call.request.body
    key_type = getattr(body, "key_type", _GROUP)
    if call.request.version >= _SEVERAL_KEYS_SINCE:
        call.answer({"coordinators": [_coordinator(call.gateway, key, key_type) for key in body.coordinator_keys]}, out)
    else:
        call.answer(_coordinator(call.gateway, body.key, key_type), out)


def _coordinator(gateway: Gateway, key: str, key_type: int) -> Values:
    if key_type not in (_GROUP, _TRANSACTION):
        return {**_NOBODY, "key": key, "error_code": ErrorCode.INVALID_REQUEST}
    if key_type == _TRANSACTION:
        what = "transactions have no coordinator here"
        return {**_NOBODY, "key": key, "error_code": ErrorCode.UNSUPPORTED_VERSION, "error_message": what}
    known = gateway.broker.image.partitions.get(gateway.topics.of_group(key))
    if known is None or known.leader == NO_LEADER:
        return {**_NOBODY, "key": key, "error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE}
    endpoint = gateway.shared.endpoints[known.leader]
    return {"key": key, "node_id": known.leader, "host": endpoint.host, "port": endpoint.port}


_NOBODY: Final[Values] = {"node_id": -1, "host": "", "port": -1}


def coordinator_of(gateway: Gateway) -> HostedCoordinator:
    """Return what coordinates groups on a gateway's broker."""
    return next(each for each in gateway.broker.hosted_roles if isinstance(each, HostedCoordinator))


def service_of(gateway: Gateway, group_id: str) -> GroupService | ErrorCode | None:
    """Return what coordinates a group here, None if there is no such group, or the error of a broker that does not."""
    shard = coordinator_of(gateway).shards.get(gateway.topics.of_group(group_id))
    if shard is None:
        return ErrorCode.NOT_COORDINATOR
    if shard.is_loading:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    found = shard.services.get(group_id)
    return found if found is not None and found.is_known else None


# Classic groups.


def join_group(call: Call, out: Outbox) -> None:
    """Join a classic group; the response comes when all members have joined."""
    body, version = call.request.body, call.request.version
    if not body.group_id:
        refused = {"error_code": ErrorCode.INVALID_GROUP_ID, "generation_id": -1, "member_id": body.member_id}
        call.answer({**refused, **_no_protocol(version)}, out)
        return
    session_ms = in_ms(body.session_timeout)
    if not _OPTIONS.session_timeout_ms_min <= session_ms <= _OPTIONS.session_timeout_ms_max:
        refused = {"error_code": ErrorCode.INVALID_SESSION_TIMEOUT, "generation_id": -1, "member_id": body.member_id}
        call.answer({**refused, **_no_protocol(version)}, out)
        return
    asked = JoinGroupRequest(
        ticket=_NO_TICKET,
        client_id=call.request.client_id,
        protocols=tuple(Protocol(each.name, bytes(each.metadata)) for each in body.protocols),
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=in_ms(getattr(body, "rebalance_timeout", body.session_timeout)),
        member_id=MemberId(body.member_id),
        instance_id=_instance(body),
        protocol_type=body.protocol_type,
        knows_two_steps=version >= _KNOWS_TWO_STEPS_SINCE,
        can_skip_assignment=version >= _SKIPS_ASSIGNMENT_SINCE,
    )

    def answer(response: Any, out: Outbox) -> None:
        assert isinstance(response, JoinGroupResponse), response
        is_joined = response.error is ErrorCode.NONE
        members = [
            {"member_id": each.member_id, "group_instance_id": each.instance_id, "metadata": each.metadata}
            for each in response.members
        ]
        values: dict[str, object] = {
            "error_code": response.error,
            "generation_id": response.generation,
            "protocol_type": body.protocol_type if is_joined else None,
            **({"protocol_name": response.protocol_name} if is_joined else _no_protocol(version)),
            "leader": response.leader_id or "",
            "skip_assignment": response.skip_assignment,
            "member_id": "" if response.error is ErrorCode.NOT_COORDINATOR else response.member_id,
            "members": members,
        }
        call.answer(values, out)

    call.gateway.ask_group(body.group_id, asked, answer, out)


def _no_protocol(version: int) -> Values:
    """Return the name of no protocol in a JoinGroup response: null since version 7."""
    return {"protocol_name": None if version >= _NULL_PROTOCOL_SINCE else ""}


def sync_group(call: Call, out: Outbox) -> None:
    """Take the leader's assignment, or wait for it."""
    body = call.request.body
    is_named = bool(getattr(body, "protocol_type", None) and getattr(body, "protocol_name", None))
    if call.request.version >= _NAMED_SINCE and not is_named:
        call.answer({"error_code": ErrorCode.INCONSISTENT_GROUP_PROTOCOL}, out)
        return
    asked = SyncGroupRequest(
        ticket=_NO_TICKET,
        member_id=MemberId(body.member_id),
        generation=body.generation_id,
        instance_id=_instance(body),
        protocol_type=getattr(body, "protocol_type", None),
        protocol_name=getattr(body, "protocol_name", None),
        assignments=tuple((MemberId(each.member_id), bytes(each.assignment)) for each in body.assignments),
    )

    def answer(response: Any, out: Outbox) -> None:
        assert isinstance(response, SyncGroupResponse), response
        is_synced = response.error is ErrorCode.NONE
        values = {
            "error_code": response.error,
            "protocol_type": (asked.protocol_type or "consumer") if is_synced else None,
            "protocol_name": response.protocol_name if is_synced else None,
            "assignment": response.assignment,
        }
        call.answer(values, out)

    call.gateway.ask_group(body.group_id, asked, answer, out)


def heartbeat(call: Call, out: Outbox) -> None:
    """Renew a classic member's session."""
    body = call.request.body
    asked = HeartbeatRequest(
        ticket=_NO_TICKET,
        member_id=MemberId(body.member_id),
        generation=body.generation_id,
        instance_id=_instance(body),
    )

    def answer(response: Any, out: Outbox) -> None:
        assert isinstance(response, HeartbeatResponse), response
        call.answer({"error_code": response.error}, out)

    call.gateway.ask_group(body.group_id, asked, answer, out)


def leave_group(call: Call, out: Outbox) -> None:
    """Remove members from a classic group."""
    body, version = call.request.body, call.request.version
    members = body.members if version >= _SEVERAL_MEMBERS_SINCE else (body,)
    named = tuple((MemberId(each.member_id), _instance(each)) for each in members)

    def answer(response: Any, out: Outbox) -> None:
        assert isinstance(response, LeaveGroupResponse), response
        error, errors = response.error, response.member_errors
        if version < _SEVERAL_MEMBERS_SINCE and error is ErrorCode.NONE and errors:
            error = errors[0]
        listed = [
            {"member_id": member, "group_instance_id": instance, "error_code": code}
            for (member, instance), code in zip(named, errors, strict=False)
        ]
        call.answer({"error_code": error, "members": listed}, out)

    call.gateway.ask_group(body.group_id, LeaveGroupRequest(ticket=_NO_TICKET, members=named), answer, out)


# Consumer groups (KIP-848).


def consumer_group_heartbeat(call: Call, out: Outbox) -> None:
    """Join, report or leave; the coordinator assigns."""
    body, gateway = call.request.body, call.gateway
    if getattr(body, "subscribed_topic_regex", None):
        what = "subscription by a regular expression on the broker is not served"
        call.answer({"error_code": ErrorCode.INVALID_REQUEST, "error_message": what, "member_epoch": 0}, out)
        return
    names, timeout_ms = body.subscribed_topic_names, in_ms(body.rebalance_timeout)
    asked = ConsumerGroupHeartbeatRequest(
        member_id=MemberId(body.member_id),
        epoch=body.member_epoch,
        instance_id=_instance(body, "instance_id"),
        client_id=call.request.client_id,
        rack=body.rack_id,
        rebalance_timeout_ms=timeout_ms if timeout_ms >= 0 else None,
        subscribed_topics=None if names is None else frozenset(map(str, names)),
        assignor=body.server_assignor,
        owned=None if body.topic_partitions is None else frozenset(_owned(gateway, body.topic_partitions)),
    )

    error = request_error(asked, coordinator_of(gateway).options.service.context)
    if not body.group_id or error is not ErrorCode.NONE:
        call.answer({"error_code": error if body.group_id else ErrorCode.INVALID_REQUEST}, out)
        return

    def answer(response: Any, out: Outbox) -> None:
        assert isinstance(response, ConsumerGroupHeartbeatResponse), response
        if response.error is not ErrorCode.NONE:
            is_unknown = response.error is ErrorCode.UNKNOWN_MEMBER_ID
            is_unheard = is_unknown and not _is_consumer_group(gateway, body.group_id)
            values: dict[str, object] = {"error_code": ErrorCode.GROUP_ID_NOT_FOUND if is_unheard else response.error}
            if is_unheard and isinstance(service_of(gateway, body.group_id), GroupService):
                values["error_message"] = f"classic group {body.group_id}: {NO_MIGRATION}, so it is not upgraded"
            call.answer(values, out)
            return
        values = {
            "error_code": response.error,
            "member_id": response.member_id or None,
            "member_epoch": response.epoch,
            "heartbeat_interval": response.heartbeat_interval_ms,
        }
        if response.assignment is not None:
            values["assignment"] = {"topic_partitions": _by_topic_id(gateway, response.assignment)}
        call.answer(values, out)

    gateway.ask_group(body.group_id, asked, answer, out)


def _is_consumer_group(gateway: Gateway, group_id: str) -> bool:
    found = service_of(gateway, group_id)
    return isinstance(found, GroupService) and found.is_consumer_group


def _owned(gateway: Gateway, listed: Sequence[Any]) -> list[TopicPartition]:
    owned = []
    for each in listed:
        topic = gateway.topics.of_id(each.topic_id)
        if topic is not None:
            owned += [TopicPartition(topic.name, PartitionId(index)) for index in each.partitions]
    return owned


def _by_topic_id(gateway: Gateway, assignment: frozenset[TopicPartition]) -> list[Values]:
    listed: list[Values] = []
    for name, each in groupby(sorted(assignment), key=lambda one: one.topic):
        topic = gateway.topics.get(name)
        if topic is not None:
            listed.append({"topic_id": topic.topic_id, "partitions": [one.partition for one in each]})
    return listed


# Offsets.


def offset_commit(call: Call, out: Outbox) -> None:
    """Commit a group's offsets; an unknown partition is refused by itself."""
    body, gateway = call.request.body, call.gateway
    asked = [(topic.name, each) for topic in body.topics for each in topic.partitions]
    known = [(name, each) for name, each in asked if gateway.topics.number_of(name, each.partition_index) is not None]
    commits = tuple(
        Commit(
            TopicPartition(name, PartitionId(each.partition_index)),
            Offset(each.committed_offset),
            _epoch(getattr(each, "committed_leader_epoch", -1)),
            each.committed_metadata or "",
        )
        for name, each in known
    )

    def reply(errors: Mapping[tuple[str, int], ErrorCode], out: Outbox) -> None:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topics = [
            {
                "name": topic.name,
                "partitions": [
                    {
                        "partition_index": each.partition_index,
                        "error_code": errors.get((topic.name, each.partition_index), unknown),
                    }
                    for each in topic.partitions
                ],
            }
            for topic in body.topics
        ]
        call.answer({"topics": topics}, out)

    def answer(response: Any, out: Outbox) -> None:
        assert isinstance(response, OffsetCommitResponse), response
        places = [(name, each.partition_index) for name, each in known]
        errors = response.errors
        if generation >= 0 and service_of(gateway, body.group_id) is None:
            is_new = call.request.version >= _UNKNOWN_GROUP_SINCE
            unheard = ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION
            errors = tuple(unheard if each is ErrorCode.UNKNOWN_MEMBER_ID else each for each in errors)
        reply(dict(zip(places, errors, strict=True)), out)

    if not commits:
        reply({}, out)
        return
    generation = getattr(body, "generation_id_or_member_epoch", getattr(body, "generation_id", -1))
    request = OffsetCommitRequest(
        commits=commits, member_id=MemberId(body.member_id), generation=generation, instance_id=_instance(body)
    )
    gateway.ask_group(body.group_id, request, answer, out)


def offset_fetch(call: Call, out: Outbox) -> None:
    """Return a group's committed offsets, of the topics named or of all."""
    body = call.request.body
    if call.request.version < _SEVERAL_GROUPS_SINCE:
        _fetch_group(call, body, lambda values, out: call.answer(values, out), out)
        return
    groups: list[Values] = []

    def gather(group_id: str) -> Callable[[Values, Outbox], None]:
        def take(values: Values, out: Outbox) -> None:
            groups.append({**values, "group_id": group_id})
            if len(groups) == len(body.groups):
                call.answer({"groups": groups}, out)

        return take

    for each in body.groups:
        _fetch_group(call, each, gather(each.group_id), out)


def _fetch_group(call: Call, asked: Any, take: Callable[[Values, Outbox], None], out: Outbox) -> None:
    """Ask for one group's offsets, and hand over the values of its response."""
    places = _places(call.gateway, asked.topics)

    def answer(response: Any, out: Outbox) -> None:
        assert isinstance(response, OffsetFetchResponse), response
        is_refused = response.error is not ErrorCode.NONE
        if is_refused and call.request.version >= _WHOLE_ERROR_SINCE:
            take({"error_code": response.error}, out)
            return
        found = (None,) * len(places) if is_refused else response.committed
        topics = []
        for name, pairs in groupby(zip(places, found, strict=True), key=lambda pair: pair[0].topic):
            values = [
                {**_committed(place, each), "error_code": response.error}
                for place, each in pairs
                if asked.topics is not None or each is not None
            ]
            if values:
                topics.append({"name": name, "partitions": values})
        take({"topics": topics, "error_code": response.error}, out)

    member_id, epoch = getattr(asked, "member_id", None), getattr(asked, "member_epoch", -1)
    request = OffsetFetchRequest(partitions=places, member_id=MemberId(member_id or ""), generation=epoch)
    call.gateway.ask_group(asked.group_id, request, answer, out)


def _committed(place: TopicPartition, found: CommittedOffset | None) -> Values:
    """Return one partition's committed offset, -1 for none."""
    if found is None:
        return {"partition_index": place.partition, "committed_offset": -1, "metadata": ""}
    return {
        "partition_index": place.partition,
        "committed_offset": found.offset,
        "committed_leader_epoch": -1 if found.leader_epoch is None else found.leader_epoch,
        "metadata": found.metadata,
    }


def _places(gateway: Gateway, topics: Sequence[Any] | None) -> tuple[TopicPartition, ...]:
    """Return the partitions that are asked for; all of the cluster's for none named."""
    if topics is None:
        return tuple(
            TopicPartition(topic.name, PartitionId(index))
            for topic in gateway.topics
            if topic.name != OFFSETS_TOPIC
            for index in range(len(topic.numbers))
        )
    return tuple(TopicPartition(each.name, PartitionId(index)) for each in topics for index in each.partition_indexes)


def _instance(body: Any, name: str = "group_instance_id") -> InstanceId | None:
    found = getattr(body, name, None)
    return None if found is None else InstanceId(found)


def _epoch(epoch: int) -> LeaderEpoch | None:
    return None if epoch < 0 else LeaderEpoch(epoch)
