"""Serve DescribeLogDirs and DeleteRecords: the size and the start of the logs on a broker.

Source: Kafka core KafkaApis.handleDescribeLogDirsRequest and handleDeleteRecordsRequest;
ReplicaManager.describeLogDirs; 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from broker.error_codes import ErrorCode
from broker.ids import Offset
from replication.retention.messages import DeleteRecordsResponse
from replication.roles.outbox import Outbox
from replication.testing.gateway import Call, Values

LOG_DIRECTORY: Final = "/simulated/disk-0"
_UNKNOWN: Final = -1


def describe_log_dirs(call: Call, out: Outbox) -> None:
    """Show the replicas on this broker's disk, with the size of each."""
    body, gateway = call.request.body, call.gateway
    wanted = None
    if body.topics is not None:
        wanted = {(each.topic, index) for each in body.topics for index in each.partitions}
    topics: dict[str, list[Values]] = {}
    for number, role in sorted(gateway.broker.roles.items()):
        topic, index = gateway.topics.place_of(number)
        if wanted is None or (topic, index) in wanted:
            log = role.log.log
            lag = max(log.high_watermark - log.log_end_offset, 0)
            values = {"partition_index": index, "partition_size": log.size_bytes, "offset_lag": lag}
            topics.setdefault(topic, []).append(values)
    listed = [{"name": name, "partitions": values} for name, values in sorted(topics.items())]
    call.answer({"results": [{"log_dir": LOG_DIRECTORY, "topics": listed}]}, out)


def delete_records(call: Call, out: Outbox) -> None:
    """Raise the start of the logs that this broker leads; answer when every live replica has done so."""
    body, gateway = call.request.body, call.gateway
    asked = {(topic.name, each.partition_index): each.offset for topic in body.topics for each in topic.partitions}
    results: dict[tuple[str, int], Values] = {}

    def take(place: tuple[str, int], error: ErrorCode, low: int, out: Outbox) -> None:
        results[place] = {"partition_index": place[1], "error_code": error, "low_watermark": low}
        if len(results) == len(asked):
            topics: dict[str, list[Values]] = {}
            for topic, index in asked:
                topics.setdefault(topic, []).append(results[topic, index])
            call.answer({"topics": [{"name": name, "partitions": each} for name, each in topics.items()]}, out)

    def taking(place: tuple[str, int]) -> Callable[[DeleteRecordsResponse, Outbox], None]:
        return lambda response, out: take(place, response.error, response.low_watermark, out)

    if not asked:
        call.answer({}, out)
    for place, offset in asked.items():
        number = gateway.topics.number_of(*place)
        if number is None:
            take(place, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN, out)
        elif gateway.topics.is_internal(number):
            take(place, ErrorCode.INVALID_TOPIC_EXCEPTION, _UNKNOWN, out)
        else:
            gateway.delete_records(number, Offset(offset), taking(place), out)
