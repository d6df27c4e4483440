"""Serve CreateTopics, CreatePartitions and DeleteTopics.

New topics are placed by KRaft's own placer, are ordered from the controller partition by partition, and are answered
when this broker sees them.

Source: Kafka core KafkaApis, AutoTopicCreationManager; metadata ReplicationControlManager; 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from broker.cluster import BrokerView
from broker.config import Scope
from broker.entropy import JavaRandom, derive
from broker.error_codes import ErrorCode
from broker.errors import RefusedError
from broker.ids import BrokerId
from placement import StripedPlacer
from placement.spec import PlacementSpec, rows_placed
from replication.roles.messages import CONTROLLER, Address, CreateTopic, DeleteTopic
from replication.roles.outbox import Outbox
from replication.testing import configs_api
from replication.testing.gateway import Call, Gateway
from replication.testing.topics import PARTITION_COUNT_MAX, Topic, directory_name, is_legal_name, visible

_PLACING_STREAM: Final = 21


@attrs.frozen
class _Counts:
    """Hold a new topic's number of partitions and replication factor."""

    partitions: int
    factor: int


@attrs.define
class _Seen:
    """Wait until this broker sees what was ordered."""

    call: Call
    is_seen: Callable[[], bool]
    finish: Callable[[ErrorCode, Outbox], None]

    def is_done(self, out: Outbox) -> bool:
        """Answer if the order has been carried out."""
        if self.is_seen():
            self.finish(ErrorCode.NONE, out)
            return True
        return False

    def expire(self, out: Outbox) -> None:
        """Answer REQUEST_TIMED_OUT."""
        self.finish(ErrorCode.REQUEST_TIMED_OUT, out)


def create_topics(call: Call, out: Outbox) -> None:
    """Create topics; each is refused by itself."""
    body, gateway = call.request.body, call.gateway
    names = [each.name for each in body.topics]
    asked = {each.name: each for each in body.topics}
    twice: Verdict = ErrorCode.INVALID_REQUEST, "Duplicate topic name."
    results = {each.name: _created(call, each, out) if names.count(each.name) == 1 else twice for each in body.topics}

    def finish(late: ErrorCode, out: Outbox) -> None:
        listed = []
        for name, (error, message) in results.items():
            topic = gateway.topics.get(name)
            values: dict[str, object] = {"name": name, "error_code": error if error else late, "error_message": message}
            if error is ErrorCode.NONE:
                counts, configs = _wanted(gateway, asked[name])
                values |= {"num_partitions": counts.partitions, "replication_factor": counts.factor}
                values["configs"] = configs_api.topic_entries(gateway, configs)
                values["topic_id"] = gateway.topics.new_id() if topic is None else topic.topic_id
            listed.append(values)
        call.answer({"topics": listed}, out)

    made = [] if body.validate_only else [name for name, (error, _) in results.items() if error is ErrorCode.NONE]
    _await(call, made, finish, out)


def _wanted(gateway: Gateway, asked: Any) -> tuple[_Counts, dict[str, str]]:
    """Return the counts and settings with which a topic is created."""
    shared, by_hand = gateway.shared, asked.assignments
    count = len(by_hand) or (shared.default_partitions if asked.num_partitions == -1 else asked.num_partitions)
    factor = shared.default_factor if asked.replication_factor == -1 else asked.replication_factor
    counts = _Counts(count, len(by_hand[0].broker_ids) if by_hand else factor)
    return counts, {each.name: each.value or "" for each in asked.configs}


def _factor(gateway: Gateway, topic: Topic) -> int:
    known = gateway.broker.image.partitions.get(topic.numbers[0])
    return -1 if known is None else len(known.replicas)


def _await(call: Call, names: Iterable[str], finish: Callable[[ErrorCode, Outbox], None], out: Outbox) -> None:
    """Answer once all topics of these names are visible here."""
    gateway, wanted = call.gateway, tuple(names)

    def is_seen() -> bool:
        found = [gateway.topics.get(name) for name in wanted]
        there = [topic for topic in found if topic is not None]
        return len(list(visible(there, gateway.broker.image))) == len(there)

    gateway.wait(_Seen(call, is_seen, finish), call.timeout_ms, out)


Verdict = tuple[ErrorCode, str | None]


def _created(call: Call, asked: Any, out: Outbox) -> Verdict:
    """Order one topic; return the error that Kafka gives, and its message."""
    gateway, name = call.gateway, asked.name
    if not is_legal_name(name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: '{name}'"
    if gateway.topics.get(name) is not None:
        return ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists."
    counts, configs = _wanted(gateway, asked)
    wrong, why = configs_api.check(Scope.TOPIC, configs)
    if wrong is not ErrorCode.NONE:
        return wrong, why
    by_hand = {each.partition_index: tuple(map(BrokerId, each.broker_ids)) for each in asked.assignments}
    if by_hand and sorted(by_hand) != list(range(len(by_hand))):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
    if counts.partitions < 1:
        return ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."
    is_only_checked = call.request.body.validate_only
    rows = [by_hand[index] for index in sorted(by_hand)]
    return _order(gateway, name, counts, configs, None if is_only_checked else out, rows)


def create_for_client(gateway: Gateway, name: str, out: Outbox) -> None:
    """Order a topic with the brokers' defaults, which a client asked for by its name."""
    _order(gateway, name, _Counts(gateway.shared.default_partitions, gateway.shared.default_factor), {}, out)


def _order(
    gateway: Gateway,
    name: str,
    counts: _Counts,
    configs: Mapping[str, str],
    out: Outbox | None,
    rows: Sequence[tuple[BrokerId, ...]] = (),
) -> Verdict:
    """Have the controller create a topic; `rows` are its replicas, placed as KRaft does if they are not given.

    Without an outbox the order is only checked.
    """
    if gateway.topics.partition_count + counts.partitions > PARTITION_COUNT_MAX:
        return ErrorCode.POLICY_VIOLATION, f"a simulated cluster has at most {PARTITION_COUNT_MAX} partitions"
    try:
        placed = rows or _placed(gateway, counts, 0)
    except RefusedError as refused:
        return ErrorCode.INVALID_REPLICATION_FACTOR, str(refused)
    unknown = {broker for row in placed for broker in row} - gateway.broker.image.brokers.keys()
    if unknown:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"broker {min(unknown)} is not registered"
    if any(not row or len(set(row)) < len(row) or len(row) != len(placed[0]) for row in placed):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition has no replica, one twice, or another number"
    if out is None:
        return ErrorCode.NONE, None
    topic = gateway.topics.add(name, counts.partitions, configs)
    configs_api.configure(gateway, topic.numbers, configs, out)
    _order_rows(gateway, topic, 0, placed, out)
    return ErrorCode.NONE, None


def _placed(gateway: Gateway, counts: _Counts, start: int) -> list[tuple[BrokerId, ...]]:
    """Return the replicas of new partitions; raise RefusedError as KRaft's placer does."""
    image, endpoints = gateway.broker.image, gateway.shared.endpoints
    brokers = [
        BrokerView(id=broker, rack=endpoints[broker].rack, fenced=status.fenced)
        for broker, status in sorted(image.brokers.items())
    ]
    entropy = JavaRandom(derive(gateway.topics.partition_count, _PLACING_STREAM))
    spec = PlacementSpec(start, counts.partitions, counts.factor)
    return [tuple(map(BrokerId, row)) for row in rows_placed(StripedPlacer(), spec, brokers, entropy).tolist()]


def _order_rows(gateway: Gateway, topic: Topic, start: int, rows: Sequence[tuple[BrokerId, ...]], out: Outbox) -> None:
    for index, row in enumerate(rows, start):
        out.send(Address(CONTROLLER), CreateTopic(topic.numbers[index], row, directory_name(topic.name, index)))


def create_partitions(call: Call, out: Outbox) -> None:
    """Add partitions to topics; each is refused by itself."""
    results = {each.name: _grown(call, each, out) for each in call.request.body.topics}

    def finish(late: ErrorCode, out: Outbox) -> None:
        listed = [
            {"name": name, "error_code": error if error else late, "error_message": message}
            for name, (error, message) in results.items()
        ]
        call.answer({"results": listed}, out)

    _await(call, (name for name, (error, _) in results.items() if error is ErrorCode.NONE), finish, out)


def _grown(call: Call, asked: Any, out: Outbox) -> Verdict:
    gateway = call.gateway
    topic = gateway.topics.get(asked.name)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    before = len(topic.numbers)
    if asked.count <= before:
        what = f"Topic currently has {before} partitions, which is higher than the requested {asked.count}."
        return ErrorCode.INVALID_PARTITIONS, what
    if gateway.topics.partition_count + asked.count - before > PARTITION_COUNT_MAX:
        return ErrorCode.POLICY_VIOLATION, f"a simulated cluster has at most {PARTITION_COUNT_MAX} partitions"
    given = [tuple(map(BrokerId, each.broker_ids)) for each in asked.assignments or ()]
    try:
        rows = given or _placed(gateway, _Counts(asked.count - before, _factor(gateway, topic)), before)
    except RefusedError as refused:
        return ErrorCode.INVALID_REPLICATION_FACTOR, str(refused)
    unknown = {broker for row in rows for broker in row} - gateway.broker.image.brokers.keys()
    factor = _factor(gateway, topic)
    if unknown or any(len(set(row)) < len(row) or len(row) != factor for row in rows):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"a partition has no {factor} registered replicas, or one twice"
    if len(rows) != asked.count - before:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{len(rows)} assignments for {asked.count - before} partitions"
    if not call.request.body.validate_only:
        grown = gateway.topics.grow(asked.name, asked.count)
        configs_api.configure(gateway, grown.numbers[before:], dict(grown.configs), out)
        _order_rows(gateway, grown, before, rows, out)
    return ErrorCode.NONE, None


def delete_topics(call: Call, out: Outbox) -> None:
    """Delete topics by name or id; each is refused by itself."""
    body, gateway = call.request.body, call.gateway
    asked = getattr(body, "topics", None) or tuple(_Named(name) for name in getattr(body, "topic_names", ()))
    results: list[dict[str, object]] = []
    gone: list[int] = []
    for each in asked:
        topic = gateway.topics.get(each.name) if each.name is not None else gateway.topics.of_id(each.topic_id)
        values: dict[str, object] = {"name": each.name, "topic_id": each.topic_id}
        if topic is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if each.name is not None else ErrorCode.UNKNOWN_TOPIC_ID
            values["error_code"] = unknown
        elif topic.is_internal:
            values |= {"error_code": ErrorCode.INVALID_REQUEST, "error_message": "an internal topic is not deleted"}
        else:
            values |= {"name": topic.name, "topic_id": topic.topic_id}
            gone += gateway.topics.remove(topic.name).numbers
        results.append(values)
    for number in gone:
        out.send(Address(CONTROLLER), DeleteTopic(number))
    image = gateway.broker.image
    waiting = _Seen(
        call,
        lambda: not any(number in image.partitions for number in gone),
        lambda late, out: call.answer({"responses": [{"error_code": late, **each} for each in results]}, out),
    )
    gateway.wait(waiting, call.timeout_ms, out)


@attrs.frozen
class _Named:
    """Hold a topic that is named as requests before version 6 do."""

    name: str
    topic_id: None = None
