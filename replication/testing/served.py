"""List the requests that are served, by API and version; what is not here is not advertised.

Left out: transactions, ACLs, quotas, share groups, SASL.

Source: Kafka's ApiKeys; the versions are those that the clients of 4.4.0, librdkafka and aiokafka speak.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from replication.roles.outbox import Outbox
from replication.testing import (
    configs_api,
    group_admin_api,
    groups_api,
    log_admin_api,
    metadata_api,
    reassignment_api,
    records_api,
    topics_api,
)
from replication.testing.entities import API_VERSIONS
from replication.testing.gateway import Call, Handler
from replication.testing.groups_api import NO_MIGRATION


@attrs.frozen
class Served:
    """Hold one API: its key, name, served versions, handler, and the limitation printed in the table of APIs."""

    api: int
    name: str
    least: int
    most: int
    handler: Handler
    limit: str = ""


_NAME_OF_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def api_versions(call: Call, out: Outbox) -> None:
    """List the requests that are served; INVALID_REQUEST for a client whose name is none (KIP-511)."""
    body = call.request.body
    names = [getattr(body, f"client_software_{what}", "unknown") for what in ("name", "version")]
    is_named = all(_NAME_OF_SOFTWARE.fullmatch(name) for name in names)
    call.answer(advertised() if is_named else {"error_code": ErrorCode.INVALID_REQUEST}, out)


def advertised(error: ErrorCode = ErrorCode.NONE) -> dict[str, object]:
    """Return the response to ApiVersions."""
    listed = [{"api_key": each.api, "min_version": each.least, "max_version": each.most} for each in SERVED]
    return {"error_code": error, "api_keys": listed}


SERVED: Final = (
    Served(0, "Produce", 3, 12, records_api.produce),
    Served(1, "Fetch", 4, 12, records_api.fetch),
    Served(2, "ListOffsets", 1, 9, records_api.list_offsets),
    Served(3, "Metadata", 0, 12, metadata_api.metadata),
    Served(8, "OffsetCommit", 2, 9, groups_api.offset_commit),
    Served(9, "OffsetFetch", 1, 9, groups_api.offset_fetch),
    Served(10, "FindCoordinator", 0, 4, groups_api.find_coordinator),
    Served(11, "JoinGroup", 0, 9, groups_api.join_group, NO_MIGRATION),
    Served(12, "Heartbeat", 0, 4, groups_api.heartbeat),
    Served(13, "LeaveGroup", 0, 5, groups_api.leave_group),
    Served(14, "SyncGroup", 0, 5, groups_api.sync_group),
    Served(15, "DescribeGroups", 0, 6, group_admin_api.describe_groups),
    Served(16, "ListGroups", 0, 5, group_admin_api.list_groups),
    Served(API_VERSIONS, "ApiVersions", 0, 4, api_versions),
    Served(19, "CreateTopics", 2, 7, topics_api.create_topics),
    Served(20, "DeleteTopics", 1, 6, topics_api.delete_topics),
    Served(21, "DeleteRecords", 0, 2, log_admin_api.delete_records),
    Served(22, "InitProducerId", 0, 5, records_api.init_producer_id),
    Served(23, "OffsetForLeaderEpoch", 2, 4, records_api.offset_for_leader_epoch),
    Served(32, "DescribeConfigs", 1, 4, configs_api.describe_configs),
    Served(35, "DescribeLogDirs", 1, 4, log_admin_api.describe_log_dirs, "a broker has one log directory"),
    Served(37, "CreatePartitions", 0, 3, topics_api.create_partitions),
    Served(42, "DeleteGroups", 0, 2, group_admin_api.delete_groups),
    Served(43, "ElectLeaders", 0, 2, reassignment_api.elect_leaders),
    Served(44, "IncrementalAlterConfigs", 0, 1, configs_api.incremental_alter_configs),
    Served(45, "AlterPartitionReassignments", 0, 1, reassignment_api.alter_partition_reassignments),
    Served(46, "ListPartitionReassignments", 0, 0, reassignment_api.list_partition_reassignments),
    Served(47, "OffsetDelete", 0, 0, group_admin_api.offset_delete),
    Served(60, "DescribeCluster", 0, 1, metadata_api.describe_cluster),
    Served(68, "ConsumerGroupHeartbeat", 0, 1, groups_api.consumer_group_heartbeat, NO_MIGRATION),
    Served(69, "ConsumerGroupDescribe", 0, 1, group_admin_api.consumer_group_describe),
    Served(75, "DescribeTopicPartitions", 0, 0, metadata_api.describe_topic_partitions),
)
BY_API: Final = {each.api: each for each in SERVED}
HANDLERS: Final = {each.api: each.handler for each in SERVED}
