"""Draw requests of Kafka's protocol from a seed: right, wrong and late ones, of every API and version served.

What it decides: which request comes next, and which broker is asked. Topics are assigned by hand and logs are written
by these requests alone, so that two clusters which answer alike stay alike. A classic group has one member at a time,
as a join would wait for the others.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, Final

import attrs

from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch
from log.record import Record
from replication.testing.served import SERVED
from tests.kafka.protocol_ends import Ref

VERSIONS: Final = {each.name: (each.api, each.least, each.most) for each in SERVED}
ROWS: Final = {"t0": [[0, 1, 2], [1, 2, 0]], "t1": [[2, 0, 1]], "t2": [[1, 0, 2], [2, 1, 0], [0, 2, 1]]}
NOWHERE: Final = "no-such-topic"
PRODUCERS: Final = (90_001, 90_002)
CONFIGS: Final = (
    ("retention.ms", "60000"),
    ("retention.ms", "abc"),
    ("max.message.bytes", "2000"),
    ("cleanup.policy", "compact,delete"),
    ("cleanup.policy", "shred"),
    ("min.insync.replicas", "2"),
    ("min.insync.replicas", "0"),
    ("no.such.setting", "1"),
    ("leader.replication.throttled.replicas", "0:1"),
    ("segment.bytes", "2000000"),
)


@attrs.frozen
class Step:
    """Hold one request: `broker` is a place, or names the coordinator of a group; `remember` keeps an answered id."""

    name: str
    version: int
    broker: int | tuple[str, str]
    values: Mapping[str, Any]
    remember: Ref | None = None
    settles: bool = False
    is_of_follower: bool = False

    @property
    def api(self) -> int:
        """Return the API key."""
        return VERSIONS[self.name][0]


@attrs.define
class World:
    """Hold what a drawer knows of the clusters: the topics there are, and those that were."""

    rows: dict[str, list[list[int]]] = attrs.field(factory=dict)
    gone: list[str] = attrs.field(factory=list)
    epochs: dict[tuple[str, int], int] = attrs.field(factory=dict)
    elected: dict[tuple[str, int], int] = attrs.field(factory=dict)

    def leader(self, topic: str, index: int) -> int:
        """Return the place of a partition's leader; 0 for a partition that there is not."""
        rows = self.rows.get(topic, [])
        return self.elected.get((topic, index), rows[index][0] if index < len(rows) else 0)


@attrs.define
class Drawer:
    """Draw steps; `now_ms` is about the clusters' time."""

    seed: int
    now_ms: int
    world: World = attrs.field(factory=World)
    count: int = 0
    sequences: dict[tuple[int, str, int], int] = attrs.field(factory=dict)
    generations: dict[str, int] = attrs.field(factory=dict)
    members: dict[str, Ref] = attrs.field(factory=dict)
    epochs: dict[str, int] = attrs.field(factory=dict)
    random: Random = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.random = Random(self.seed)

    def first(self) -> Iterator[Step]:
        """Yield the steps that create the topics."""
        for name, rows in ROWS.items():
            yield self.create(name, rows)

    def create(self, name: str, rows: list[list[int]]) -> Step:
        """Return the step that creates a topic."""
        self.world.rows[name] = [list(row) for row in rows]
        assignments = [
            {"partition_index": index, "broker_ids": [Ref("broker", each) for each in row]}
            for index, row in enumerate(rows)
        ]
        topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": assignments}
        values = {"topics": [topic], "timeout": 10_000}
        return Step("CreateTopics", 7, 0, values, Ref("topic", name), settles=True)

    def next(self) -> Step:
        """Return the next step."""
        self.count += 1
        draw: Callable[[Drawer], Step] = self.random.choice(DRAWS)
        return draw(self)

    # What they are made of.

    def version(self, name: str, least: int = 0) -> int:
        """Return a served version."""
        _, low, high = VERSIONS[name]
        return self.random.randint(max(low, least), high)

    def topic(self) -> str:
        """Return a topic: mostly one that there is."""
        others = [NOWHERE, *self.world.gone[-2:]]
        return self.random.choice(sorted(self.world.rows) if self.one_in(8, no=True) else others)

    def index(self, topic: str) -> int:
        """Return a partition's index, seldom one that there is not."""
        indexes: list[int] = [*range(len(self.world.rows.get(topic, [0]))), *([7] if self.one_in(12) else [])]
        return self.random.choice(indexes)

    def one_in(self, count: int, *, no: bool = False) -> bool:
        """Return whether the one of so many cases is drawn."""
        return bool(self.random.randrange(count)) is no

    def broker(self, topic: str, index: int) -> int:
        """Return a partition's leader, seldom another broker."""
        return self.random.randrange(3) if self.one_in(8) else self.world.leader(topic, index)

    def batch(self, topic: str, index: int) -> bytes:
        """Return a batch of a producer: right, repeated, out of order, damaged or too large."""
        kind = self.random.choice(
            ["plain", "plain", "idempotent", "idempotent", "repeated", "gap", "old", "damaged", "late", "large", "none"]
        )
        count = self.random.randint(1, 4)
        at_ms = self.now_ms + (9_999_999 if kind == "late" else 0)
        size = 1_200_000 if kind == "large" and self.one_in(3) else self.random.randint(0, 40)
        rows = [Record(Offset(place), TimeMs(at_ms + place), b"k%d" % place, b"v" * size) for place in range(count)]
        if kind == "none":
            return b""
        spec = BatchSpec()
        if kind in ("idempotent", "repeated", "gap", "old"):
            producer = self.random.choice(PRODUCERS)
            key = producer, topic, index
            sequence = self.sequences.get(key, 0)
            first = {"repeated": max(sequence - count, 0), "gap": sequence + 7}.get(kind, sequence)
            spec = BatchSpec(
                producer_id=ProducerId(producer),
                producer_epoch=ProducerEpoch(0 if kind == "old" else 1),
                base_sequence=first,
            )
            if kind == "idempotent":
                self.sequences[key] = sequence + count
        data = bytearray(build_batch(spec, rows))
        if kind == "damaged":
            data[-1] ^= 1
        return bytes(data)


# Records.


def produce(draw: Drawer) -> Step:
    """Write to a partition or two."""
    topic = draw.topic()
    index = draw.index(topic)
    acks = draw.random.choice([-1, -1, -1, 1, 1, 2, 0])
    records = draw.batch(topic, index)
    data = [{"name": topic, "partition_data": [{"index": index, "records": records}]}]
    if draw.one_in(6):
        data.append({"name": NOWHERE, "partition_data": [{"index": 0, "records": records}]})
    values = {"transactional_id": None, "acks": acks, "timeout": 5_000, "topic_data": data}
    return Step("Produce", draw.version("Produce"), draw.broker(topic, index), values)


def fetch(draw: Drawer) -> Step:
    """Read a partition or two, without a session."""
    topic = draw.topic()
    index = draw.index(topic)
    partition = {
        "partition": index,
        "current_leader_epoch": draw.random.choice([-1, -1, 0, 1, 9]),
        "fetch_offset": draw.random.choice([0, 0, 1, 3, 5, 900, -5]),
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": draw.random.choice([1, 300, 100_000]),
    }
    values = {
        "replica_id": -1,
        "max_wait": draw.random.choice([0, 20]),
        "min_bytes": draw.random.choice([0, 1, 200]),
        "max_bytes": draw.random.choice([1, 400, 100_000]),
        "isolation_level": draw.random.choice([0, 1]),
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": topic, "partitions": [partition]}],
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    broker = draw.broker(topic, index)
    is_of_follower = broker != draw.world.leader(topic, index)
    return Step("Fetch", draw.version("Fetch"), broker, values, is_of_follower=is_of_follower)


def list_offsets(draw: Drawer) -> Step:
    """Ask for an offset by time."""
    topic = draw.topic()
    index = draw.index(topic)
    partition = {
        "partition_index": index,
        "current_leader_epoch": draw.random.choice([-1, -1, 0, 1, 9]),
        "timestamp": draw.random.choice([-1, -2, -1, -2, -3, -4, -5, 0, draw.now_ms, draw.now_ms + 2, 1 << 50]),
    }
    topics = [{"name": topic, "partitions": [partition]}]
    values = {"replica_id": -1, "isolation_level": draw.random.choice([0, 1]), "topics": topics}
    return Step("ListOffsets", draw.version("ListOffsets"), draw.broker(topic, index), values)


def epoch_end(draw: Drawer) -> Step:
    """Ask where a leader epoch ends."""
    topic = draw.topic()
    index = draw.index(topic)
    epochs = {name: draw.random.choice([-1, 0, 1, 2, 9]) for name in ("current_leader_epoch", "leader_epoch")}
    topics = [{"topic": topic, "partitions": [{"partition": index, **epochs}]}]
    values = {"replica_id": -1, "topics": topics}
    return Step("OffsetForLeaderEpoch", draw.version("OffsetForLeaderEpoch"), draw.broker(topic, index), values)


def init_producer(draw: Drawer) -> Step:
    """Ask for a producer id."""
    given = draw.random.choice([(-1, -1), (-1, -1), (90_001, 3), (-1, 4)])
    values = {
        "transactional_id": None,
        "transaction_timeout": 1_000,
        "producer_id": given[0],
        "producer_epoch": given[1],
    }
    return Step("InitProducerId", draw.version("InitProducerId"), draw.random.randrange(3), values)


def delete_records(draw: Drawer) -> Step:
    """Raise a log's start."""
    topic = draw.topic()
    index = draw.index(topic)
    offset = draw.random.choice([0, 1, 2, 900, -1, -3])
    topics = [{"name": topic, "partitions": [{"partition_index": index, "offset": offset}]}]
    version = draw.version("DeleteRecords")
    return Step("DeleteRecords", version, draw.broker(topic, index), {"topics": topics, "timeout": 5_000})


# Metadata.


def metadata(draw: Drawer) -> Step:
    """Ask for topics by name, by id, or for all."""
    version = draw.version("Metadata")
    names = [draw.topic(), draw.topic()]
    topics: list[dict[str, Any]] = [{"name": name} for name in dict.fromkeys(names)]
    if version >= 12 and draw.one_in(2):
        topics = [{"name": None, "topic_id": Ref("topic", draw.topic())}]
    if draw.one_in(8):
        topics = [{"name": "bad/name"}]
    values = {
        "topics": topics,
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": draw.one_in(3),
        "include_topic_authorized_operations": draw.one_in(3),
    }
    return Step("Metadata", max(version, 4), draw.random.randrange(3), values)


def describe_cluster(draw: Drawer) -> Step:
    """Ask for the brokers."""
    values = {"include_cluster_authorized_operations": draw.one_in(2), "endpoint_type": 1}
    return Step("DescribeCluster", draw.version("DescribeCluster"), draw.random.randrange(3), values)


def api_versions(draw: Drawer) -> Step:
    """Ask for the versions, with a good or a bad name of the client."""
    name = draw.random.choice(["client", "", "bad name"])
    values = {"client_software_name": name, "client_software_version": "1"}
    return Step("ApiVersions", draw.version("ApiVersions"), draw.random.randrange(3), values)


def describe_configs(draw: Drawer) -> Step:
    """Ask for settings."""
    name = draw.topic()
    kind, resource = draw.random.choice([(2, name), (2, name), (2, "bad/name"), (4, Ref("broker_name", 1)), (99, "x")])
    keys = draw.random.choice([None, ["retention.ms", "min.insync.replicas"], ["no.such.setting"]])
    if kind == 4:
        keys = ["num.network.threads.x", "log.cleaner.delete.retention.ms", "compression.type"]
    resources = [{"resource_type": kind, "resource_name": resource, "configuration_keys": keys}]
    values = {"resources": resources, "include_synonyms": draw.one_in(2), "include_documentation": False}
    return Step("DescribeConfigs", draw.version("DescribeConfigs"), 1, values)


def alter_configs(draw: Drawer) -> Step:
    """Alter a setting of t1, which none of the written topics is, or one that is refused."""
    name, value = draw.random.choice(CONFIGS)
    operation = draw.random.choice([0, 0, 0, 1, 2, 3])
    config = {"name": name, "config_operation": operation, "value": None if operation == 1 or draw.one_in(9) else value}
    topic = draw.random.choice(["t1", "t1", NOWHERE])
    resources = [{"resource_type": 2, "resource_name": topic, "configs": [config]}]
    values = {"resources": resources, "validate_only": draw.one_in(4)}
    version = draw.version("IncrementalAlterConfigs")
    return Step("IncrementalAlterConfigs", version, draw.random.randrange(3), values, settles=True)


def log_dirs(draw: Drawer) -> Step:
    """Ask for the size of logs."""
    topic = draw.topic()
    values = {"topics": [{"topic": topic, "partitions": [0, 1]}]}
    return Step("DescribeLogDirs", draw.version("DescribeLogDirs"), draw.random.randrange(3), values)


# Topics.


def describe_partitions(draw: Drawer) -> Step:
    """Ask for a page of topics: of some or all, small or large, from a cursor that is right or wrong."""
    some = [draw.topic(), draw.topic(), *(["bad/name"] if draw.one_in(6) else [])]
    cursor = None
    if draw.one_in(2):
        topic = draw.random.choice(some)
        cursor = {"topic_name": topic, "partition_index": draw.random.choice([0, 0, 1, 2, 7, -1])}
    limit = draw.random.choice([0, 1, 1, 2, 3, 2_000, 5_000, -3])
    # All are asked for from a cursor on only: __consumer_offsets comes first, and has other partitions.
    has_all = cursor is not None and draw.one_in(3)
    topics = [] if has_all else [{"name": name} for name in (some[1:] if draw.one_in(6) else some)]
    values = {"topics": topics, "response_partition_limit": limit, "cursor": cursor}
    return Step("DescribeTopicPartitions", 0, draw.random.randrange(3), values)


def create_topics(draw: Drawer) -> Step:
    """Create a topic that is refused, or only validate."""
    name = draw.random.choice(["t0", "bad/name", "..", "n" * 250, "fresh"])
    is_only_checked = name == "fresh"
    counts = draw.random.choice([(1, 1), (0, 1), (2, 9), (-5, 1), (2, 0), (-1, -1)])
    config = draw.random.choice([None, *CONFIGS])
    rows = draw.random.choice([None, None, [[0, 1], [1, 9]], [[0, 0]], [[0], [1, 2]], []])
    assignments = [
        {"partition_index": index, "broker_ids": [Ref("broker", each) for each in row]}
        for index, row in enumerate(rows or [])
    ]
    topic = {
        "name": name,
        "num_partitions": -1 if rows else counts[0],
        "replication_factor": -1 if rows else counts[1],
        "assignments": assignments,
        "configs": [] if config is None else [{"name": config[0], "value": config[1]}],
    }
    topics = [topic, topic] if draw.one_in(9) else [topic]
    values = {"topics": topics, "timeout": 5_000, "validate_only": is_only_checked}
    return Step("CreateTopics", draw.version("CreateTopics"), draw.random.randrange(3), values)


def renew_topic(draw: Drawer) -> Step:
    """Create another topic, or delete one of those."""
    extra = sorted(set(draw.world.rows) - ROWS.keys())
    if len(extra) < 2:
        return draw.create(f"x{draw.count}", draw.random.choice(list(ROWS.values())))
    name = extra[0]
    del draw.world.rows[name]
    draw.world.gone.append(name)
    version = draw.version("DeleteTopics")
    if version >= 6:
        topics = [
            {"name": None, "topic_id": Ref("topic", name)} if draw.one_in(2) else {"name": name, "topic_id": None}
        ]
        return Step("DeleteTopics", version, 0, {"topics": topics, "timeout": 10_000}, settles=True)
    return Step("DeleteTopics", version, 0, {"topic_names": [name], "timeout": 10_000}, settles=True)


def delete_topics(draw: Drawer) -> Step:
    """Delete a topic that there is not."""
    version = draw.version("DeleteTopics")
    gone = draw.random.choice([NOWHERE, *draw.world.gone])
    values: dict[str, Any] = {"topic_names": [gone], "timeout": 5_000}
    if version >= 6:
        by_id = [{"name": None, "topic_id": Ref("topic", gone)}]
        values = {"topics": draw.random.choice([by_id, [{"name": gone, "topic_id": None}]]), "timeout": 5_000}
    return Step("DeleteTopics", version, draw.random.randrange(3), values)


def create_partitions(draw: Drawer) -> Step:
    """Add partitions, wrongly."""
    topic = draw.topic()
    count = draw.random.choice([0, 1, -1, 2, 4, 3])
    rows = draw.random.choice([None, [[0]], [[0, 1, 9]], [[0, 1, 2], [0, 1, 2]]])
    assignments = None if rows is None else [{"broker_ids": [Ref("broker", each) for each in row]} for row in rows]
    topics = [{"name": topic, "count": count, "assignments": assignments}]
    values = {"topics": topics, "timeout": 5_000, "validate_only": True}
    return Step("CreatePartitions", draw.version("CreatePartitions"), draw.random.randrange(3), values)


def reassign(draw: Drawer) -> Step:
    """Move a partition within its brokers, which changes the preferred leader; or ask for what is refused."""
    topic = draw.random.choice([*sorted(draw.world.rows), NOWHERE])
    rows = draw.world.rows.get(topic, [[0, 1, 2]])
    index = draw.random.randrange(len(rows))
    target: list[int] | None = draw.random.sample(range(3), 3)
    if draw.one_in(2) or topic == NOWHERE:
        target = draw.random.choice([None, [], [0, 0, 1], [0, 1, 9], [-1, 0, 1]])
    else:
        draw.world.elected.setdefault((topic, index), rows[index][0])
        rows[index] = list(target or ())
    replicas = None if target is None else [Ref("broker", each) for each in target]
    topics = [{"name": topic, "partitions": [{"partition_index": index, "replicas": replicas}]}]
    values = {"timeout": 10_000, "allow_replication_factor_change": draw.one_in(2), "topics": topics}
    version = draw.version("AlterPartitionReassignments")
    return Step("AlterPartitionReassignments", version, draw.random.randrange(3), values, settles=True)


def list_reassignments(draw: Drawer) -> Step:
    """Ask which moves are under way: none."""
    topics = draw.random.choice([None, [{"name": draw.topic(), "partition_indexes": [0, 7]}]])
    return Step("ListPartitionReassignments", 0, draw.random.randrange(3), {"timeout": 5_000, "topics": topics})


def elect(draw: Drawer) -> Step:
    """Elect a preferred leader."""
    topic = draw.topic()
    index = draw.index(topic)
    version = draw.version("ElectLeaders")
    kind = draw.random.choice([0, 0, 0, 1]) if version else 0
    if topic in draw.world.rows and index < len(draw.world.rows[topic]) and kind == 0:
        draw.world.elected.pop((topic, index), None)
    topics = [{"topic": topic, "partitions": [index]}]
    values = {"election_type": kind, "topic_partitions": topics, "timeout": 10_000}
    return Step("ElectLeaders", version, draw.random.randrange(3), values, settles=True)


# Groups.

CLASSIC: Final = ("c0", "c1", "c2", "c3")
SUBSCRIPTION: Final = bytes.fromhex("0001000000010002743000000000ffffffff")
ASSIGNMENT: Final = bytes.fromhex("00010000000100027430000000010000000000000000")


def _named(draw: Drawer, names: list[str]) -> str:
    """Return one of the names, of groups of this run."""
    name = draw.random.choice(names)
    return name and f"{name}-{draw.seed}"


def _group(draw: Drawer) -> str:
    return _named(draw, [*CLASSIC, *CLASSIC, "k0", "k1", "unheard-of"])


def _place(draw: Drawer, group: str) -> tuple[str, str]:
    return ("other" if draw.one_in(12) else "coordinator", group)


def _member(draw: Drawer, group: str) -> Ref | str:
    known = draw.members.get(group)
    return known if known is not None and draw.one_in(6, no=True) else draw.random.choice(["", "stranger"])


def find_coordinator(draw: Drawer) -> Step:
    """Ask who coordinates a group; keys that are none."""
    group = _group(draw)
    version = draw.version("FindCoordinator")
    kind = draw.random.choice([0, 0, 0, 9])
    values = {"key": group, "key_type": kind, "coordinator_keys": [group, ""] if draw.one_in(4) else [group]}
    return Step("FindCoordinator", version, draw.random.randrange(3), values)


def join(draw: Drawer) -> Step:
    """Join a classic group, alone."""
    group = _named(draw, [*CLASSIC, *CLASSIC, *CLASSIC, "k0", ""])
    version = draw.version("JoinGroup")
    known = draw.members.get(group)
    member: Ref | str = known if known is not None else ""
    if draw.one_in(8):
        member = "stranger"
    ref = Ref("member", f"{group}/{draw.count}") if known is None else known
    if group and group[0] == "c" and member == "":
        draw.members[group] = ref
    values = {
        "group_id": group,
        "session_timeout": draw.random.choice([1_000_000, 1_000_000, 1_000_000, 10, 1 << 30]),
        "rebalance_timeout": 1_800_000,
        "member_id": member,
        "group_instance_id": None,
        "protocol_type": draw.random.choice(["consumer", "consumer", "consumer", "other", ""]),
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}] if draw.one_in(9, no=True) else [],
        "reason": None,
    }
    return Step("JoinGroup", version, _place(draw, group), values, ref)


def _generation(draw: Drawer, group: str) -> Any:
    return draw.random.choice([Ref("generation", group), Ref("generation", group), Ref("generation", group), 0, 77, -1])


def sync(draw: Drawer) -> Step:
    """Give the assignment of the one member."""
    group, version = _group(draw), draw.version("SyncGroup")
    member = _member(draw, group)
    values = {
        "group_id": group,
        "generation_id": _generation(draw, group),
        "member_id": member,
        "group_instance_id": None,
        "protocol_type": draw.random.choice([None, "consumer", "consumer", "other"]) if version >= 5 else None,
        "protocol_name": draw.random.choice([None, "range", "range", "other"]) if version >= 5 else None,
        "assignments": [{"member_id": member, "assignment": ASSIGNMENT}],
    }
    if version >= 5 and draw.one_in(6, no=True):
        values |= {"protocol_type": "consumer", "protocol_name": "range"}
    return Step("SyncGroup", version, _place(draw, group), values)


def heartbeat(draw: Drawer) -> Step:
    """Send a heartbeat of a classic member."""
    group = _group(draw)
    values = {
        "group_id": group,
        "generation_id": _generation(draw, group),
        "member_id": _member(draw, group),
        "group_instance_id": draw.random.choice([None, None, None, "static"]),
    }
    return Step("Heartbeat", draw.version("Heartbeat", 3), _place(draw, group), values)


def leave(draw: Drawer) -> Step:
    """Leave a classic group."""
    group = _named(draw, [*CLASSIC, "k0", "unheard-of"])
    member = _member(draw, group)
    if draw.one_in(2, no=True):
        member = "stranger"
    place = _place(draw, group)
    if isinstance(member, Ref) and place[0] == "coordinator":
        draw.members.pop(group, None)
    one = {"member_id": member, "group_instance_id": None, "reason": None}
    values = {"group_id": group, "member_id": member, "members": [one]}
    return Step("LeaveGroup", draw.version("LeaveGroup"), place, values)


def commit(draw: Drawer) -> Step:
    """Commit offsets, of a member or of nobody."""
    group, version = _group(draw), draw.version("OffsetCommit")
    topic = draw.topic()
    partition = {
        "partition_index": draw.index(topic),
        "committed_offset": draw.random.choice([0, 5, 1_000, -7]),
        "committed_leader_epoch": draw.random.choice([-1, 0, 3]),
        "committed_metadata": draw.random.choice(["", "a note", None, "x" * 5_000 if draw.one_in(4) else "y"]),
    }
    generation = draw.random.choice([_generation(draw, group), -1])
    values = {
        "group_id": group,
        "generation_id_or_member_epoch": generation,
        "generation_id": generation,
        "member_id": _member(draw, group) if generation != -1 else "",
        "group_instance_id": None,
        "retention_time": -1,
        "topics": [{"name": topic, "partitions": [partition]}],
    }
    return Step("OffsetCommit", version, _place(draw, group), values)


def fetch_offsets(draw: Drawer) -> Step:
    """Ask for committed offsets."""
    group, version = _group(draw), draw.version("OffsetFetch")
    topics: Any = [{"name": name, "partition_indexes": [0, 1]} for name in dict.fromkeys([draw.topic(), "t0"])]
    if draw.one_in(3) and version >= 2:
        topics = None
    asked = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": topics}
    values = {**asked, "groups": [asked], "require_stable": draw.one_in(2)}
    return Step("OffsetFetch", version, _place(draw, group), values)


def delete_offsets(draw: Drawer) -> Step:
    """Delete committed offsets."""
    group, topic = _group(draw), draw.topic()
    topics = [{"name": topic, "partitions": [{"partition_index": draw.index(topic)}]}]
    return Step("OffsetDelete", 0, _place(draw, group), {"group_id": group, "topics": topics})


def describe_groups(draw: Drawer) -> Step:
    """Describe a classic group."""
    group = _group(draw)
    values = {"groups": [group], "include_authorized_operations": draw.one_in(3)}
    return Step("DescribeGroups", draw.version("DescribeGroups"), _place(draw, group), values)


def describe_consumer_groups(draw: Drawer) -> Step:
    """Describe a consumer group."""
    group = _named(draw, ["k0", "k1", "c0", "unheard-of"])
    values = {"group_ids": [group], "include_authorized_operations": draw.one_in(3)}
    return Step("ConsumerGroupDescribe", draw.version("ConsumerGroupDescribe"), _place(draw, group), values)


def delete_groups(draw: Drawer) -> Step:
    """Delete a group."""
    group = _group(draw)
    return Step("DeleteGroups", draw.version("DeleteGroups"), _place(draw, group), {"groups_names": [group]})


def list_groups(draw: Drawer) -> Step:
    """List the groups in a state that no group is in."""
    values = {"states_filter": ["Dead"], "types_filter": draw.random.choice([[], ["classic"]])}
    return Step("ListGroups", draw.version("ListGroups", 4), draw.random.randrange(3), values)


def consumer_heartbeat(draw: Drawer) -> Step:
    """Join, report or leave as one of two members of a KIP-848 group."""
    group = _named(draw, ["k0", "k0", "k1", "k1", "c0", ""])
    member = draw.random.choice(["AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"])
    key = f"{group}/{member}"
    epoch: Any = Ref("epoch", key)
    kind = draw.random.choice(["join", "join", "report", "report", "report", "leave", "stale"])
    if kind != "report":
        epoch = {"join": 0, "leave": -1, "stale": 99}[kind]
    is_full = kind == "join"
    values = {
        "group_id": group,
        "member_id": member,
        "member_epoch": epoch,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout": 1_000_000 if is_full else -1,
        "subscribed_topic_names": ["t0"] if is_full else None,
        "subscribed_topic_regex": None,
        "server_assignor": draw.random.choice([None, None, "uniform", "nobody"]) if is_full else None,
        "topic_partitions": [] if is_full else None,
    }
    version = draw.version("ConsumerGroupHeartbeat")
    return Step("ConsumerGroupHeartbeat", version, _place(draw, group), values, Ref("epoch", key))


DRAWS: Final[tuple[Any, ...]] = (
    *(produce, produce, produce, fetch, fetch, list_offsets, list_offsets, epoch_end, init_producer, delete_records),
    *(metadata, metadata, describe_cluster, api_versions, describe_configs, alter_configs, log_dirs),
    describe_partitions,
    *(create_topics, create_topics, renew_topic, delete_topics, create_partitions, reassign, list_reassignments, elect),
    *(find_coordinator, join, join, sync, sync, heartbeat, leave, commit, commit, commit, fetch_offsets, fetch_offsets),
    *(
        list_groups,
        delete_offsets,
        describe_groups,
        describe_consumer_groups,
        delete_groups,
        consumer_heartbeat,
        consumer_heartbeat,
    ),
)
