"""List the settings of a broker as a server: requests, replication, quotas, the controller and its quorum.

One line a setting, in the order in which a request meets them: the socket, the queues and threads,
purgatory, the followers' fetches, the controller's duties, KRaft's heartbeats and elections.

Left out: listeners, security, metrics and ZooKeeper: no model reads them.

Source: Kafka 4.3.1, the classes named in each row; values compared with what those classes print.
"""

from __future__ import annotations

from typing import Final

from broker.config.build import flag, long, small, text, texts, whole
from broker.config.setting import INT_MAX, Setting, Unit
from broker.units import KIB, MIB

_SOCKET: Final = "SocketServerConfigs"
_SERVER: Final = "ServerConfigs"
_REPLICATION: Final = "ReplicationConfigs"
_LOG: Final = "ServerLogConfigs"
_KRAFT: Final = "KRaftConfigs"
_QUORUM: Final = "QuorumConfig, KIP-595"
_QUOTA: Final = "QuotaConfig, KIP-73"

REQUESTS: Final[tuple[Setting, ...]] = (
    whole(
        "num.network.threads", 3, "Threads of one listener that read requests and write responses.", _SOCKET, minimum=1
    ),
    whole("num.io.threads", 8, "Threads that handle requests, disk included.", _SERVER, minimum=1),
    whole("background.threads", 10, "Threads for the broker's own recurring tasks.", _SERVER, minimum=1),
    whole(
        "queued.max.requests",
        500,
        "Requests that may wait before the network threads stop reading.",
        _SOCKET,
        minimum=1,
    ),
    long(
        "queued.max.request.bytes", -1, "Bytes that may wait likewise; -1 counts requests only.", f"{_SOCKET}, KIP-72"
    ),
    whole(
        "socket.listen.backlog.size", 50, "Connections that may wait to be accepted.", f"{_SOCKET}, KIP-764", minimum=1
    ),
    whole("socket.receive.buffer.bytes", 100 * KIB, "Receive buffer of a socket; -1 leaves it to the system.", _SOCKET),
    whole("socket.send.buffer.bytes", 100 * KIB, "Send buffer of a socket; -1 leaves it to the system.", _SOCKET),
    whole(
        "socket.request.max.bytes",
        100 * MIB,
        "Greatest request that is read; a greater one closes the connection.",
        _SOCKET,
        minimum=1,
    ),
    whole("max.connections", INT_MAX, "Connections of the whole broker.", f"{_SOCKET}, KIP-402", minimum=0),
    whole("max.connections.per.ip", INT_MAX, "Connections from one address.", _SOCKET, minimum=0),
    whole("max.connection.creation.rate", INT_MAX, "New connections in a second.", f"{_SOCKET}, KIP-612", minimum=0),
    long("connections.max.idle.ms", 600_000, "An idle connection is closed after this time.", _SOCKET),
    whole("request.timeout.ms", 30_000, "How long the broker waits for answers to requests of its own.", _SERVER),
    whole(
        "fetch.max.bytes",
        55 * MIB,
        "Greatest response to one fetch of a consumer or follower.",
        f"{_SERVER}, KIP-541",
        minimum=1024,
    ),
    whole(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "Fetch sessions that are remembered.",
        f"{_SERVER}, KIP-227",
        minimum=0,
    ),
    whole(
        "max.request.partition.size.limit",
        2000,
        "Partitions that one describe request may name.",
        f"{_SERVER}, KIP-966",
        minimum=1,
    ),
    whole(
        "message.max.bytes",
        MIB + 12,
        "Greatest batch that is appended, 12 bytes of framing included.",
        _SERVER,
        minimum=0,
    ),
    whole(
        "fetch.purgatory.purge.interval.requests", 1000, "Finished fetches that may stay on watch lists.", _REPLICATION
    ),
    whole(
        "producer.purgatory.purge.interval.requests",
        1000,
        "Finished produces that may stay on watch lists.",
        _REPLICATION,
    ),
    whole(
        "delete.records.purgatory.purge.interval.requests",
        1,
        "Finished record deletions that may stay on watch lists.",
        _REPLICATION,
    ),
)

REPLICATION: Final[tuple[Setting, ...]] = (
    long(
        "replica.lag.time.max.ms",
        30_000,
        "A follower not caught up for longer leaves the ISR; 10 s before 2.5.",
        f"{_REPLICATION}, KIP-537",
    ),
    whole(
        "replica.fetch.max.bytes", MIB, "Bytes asked for each partition in a follower's fetch.", _REPLICATION, minimum=0
    ),
    whole(
        "replica.fetch.response.max.bytes",
        10 * MIB,
        "Bytes asked for all partitions of a follower's fetch.",
        f"{_REPLICATION}, KIP-74",
        minimum=0,
    ),
    whole("replica.fetch.min.bytes", 1, "Bytes that the leader waits for before it answers a follower.", _REPLICATION),
    whole("replica.fetch.wait.max.ms", 500, "The leader's longest wait for those bytes.", _REPLICATION),
    whole(
        "replica.fetch.backoff.ms",
        1000,
        "A follower's pause for a partition whose fetch failed.",
        _REPLICATION,
        minimum=0,
    ),
    whole("replica.socket.timeout.ms", 30_000, "A follower's wait for the leader's answer.", _REPLICATION),
    whole("replica.socket.receive.buffer.bytes", 64 * KIB, "Receive buffer of a follower's socket.", _REPLICATION),
    whole("num.replica.fetchers", 1, "Threads that fetch from one source broker.", _REPLICATION, minimum=1),
    text(
        "replica.selector.class",
        None,
        "Chooses the replica that a consumer reads from; the leader when not set.",
        f"{_REPLICATION}, KIP-392",
    ),
    text("broker.rack", None, "The rack that this broker stands in.", f"{_SERVER}, KIP-36"),
    long(
        "replica.high.watermark.checkpoint.interval.ms",
        5000,
        "How often high watermarks are written to disk.",
        _REPLICATION,
    ),
    whole("default.replication.factor", 1, "Replicas of a topic that is created without a number.", _REPLICATION),
    whole("num.partitions", 1, "Partitions of a topic that is created without a number.", _LOG, minimum=1),
    flag("auto.create.topics.enable", True, "An unknown topic that a client asks for is created.", _LOG),
    flag("delete.topic.enable", True, "Topics may be deleted.", _SERVER),
    whole("min.insync.replicas", 1, "In-sync replicas that a write with acks=all needs.", _LOG, minimum=1),
    flag(
        "unclean.leader.election.enable",
        False,
        "A replica outside the ISR may lead when no other can; true before 0.11.",
        f"{_REPLICATION}, KIP-106",
    ),
    long(
        "unclean.leader.election.interval.ms",
        300_000,
        "How often the controller looks for leaderless partitions.",
        f"{_REPLICATION}, KAFKA-12670",
        minimum=1,
        internal=True,
    ),
    flag(
        "auto.leader.rebalance.enable", True, "The controller gives leadership back to preferred leaders.", _REPLICATION
    ),
    long(
        "leader.imbalance.check.interval.seconds",
        300,
        "How often it looks for leaders that are not the preferred ones.",
        _REPLICATION,
        minimum=1,
    ),
    flag(
        "controlled.shutdown.enable",
        True,
        "A stopping broker first hands its leaderships over.",
        _SERVER,
    ),
    whole(
        "num.replica.alter.log.dirs.threads",
        None,
        "Threads that move replicas between directories; one a directory when not set.",
        f"{_SERVER}, KIP-113",
    ),
    texts(
        "cordoned.log.dirs",
        (),
        "Directories that get no new replicas; * for all.",
        f"{_LOG}, KIP-1066",
        since="4.3",
    ),
    whole("replication.quota.window.num", 11, "Samples that the replication throttle remembers.", _QUOTA, minimum=1),
    whole("replication.quota.window.size.seconds", 1, "Length of one such sample.", _QUOTA, minimum=1),
)

CONTROLLER: Final[tuple[Setting, ...]] = (
    whole("broker.heartbeat.interval.ms", 2000, "How often a broker reports to the controller.", f"{_KRAFT}, KIP-631"),
    whole("broker.session.timeout.ms", 9000, "A broker silent for longer is fenced.", f"{_KRAFT}, KIP-631"),
    whole(
        "initial.broker.registration.timeout.ms",
        60_000,
        "A broker that cannot register for longer gives up.",
        f"{_KRAFT}, KIP-631",
    ),
    long(
        "log.dir.failure.timeout.ms",
        30_000,
        "A broker that cannot report a failed directory for longer stops.",
        f"{_LOG}, KIP-858",
        minimum=1,
        since="3.7",
    ),
    whole(
        "controller.quorum.election.timeout.ms",
        1000,
        "A voter's wait for votes before the next round.",
        _QUORUM,
        minimum=0,
    ),
    whole(
        "controller.quorum.fetch.timeout.ms",
        2000,
        "A voter's wait for its leader before it stands itself.",
        _QUORUM,
        minimum=0,
    ),
    whole(
        "controller.quorum.election.backoff.max.ms", 1000, "Longest pause between rounds of votes.", _QUORUM, minimum=0
    ),
    whole(
        "controller.quorum.append.linger.ms", 25, "How long the quorum's leader gathers records.", _QUORUM, minimum=0
    ),
    whole(
        "controller.quorum.fetch.max.bytes",
        MIB,
        "Bytes that one fetch of the quorum asks for.",
        _QUORUM,
        minimum=1,
        since="4.3",
    ),
    whole(
        "controller.quorum.fetch.snapshot.max.bytes",
        MIB,
        "Bytes that one fetch of a snapshot asks for.",
        _QUORUM,
        minimum=1,
        since="4.3",
    ),
    whole("controller.quorum.request.timeout.ms", 2000, "A voter's wait for an answer.", _QUORUM, minimum=0),
    whole("controller.quorum.retry.backoff.ms", 20, "A voter's pause before it asks again.", _QUORUM, minimum=0),
    long(
        "metadata.log.max.record.bytes.between.snapshots",
        20 * MIB,
        "New metadata that calls for a snapshot.",
        _KRAFT,
        minimum=1,
        unit=Unit.BYTES,
    ),
    long(
        "metadata.log.max.snapshot.interval.ms",
        3_600_000,
        "Time after which new metadata calls for one.",
        f"{_KRAFT}, KIP-876",
        minimum=0,
    ),
    whole(
        "metadata.log.segment.bytes",
        1024 * MIB,
        "Size at which the metadata log starts a segment.",
        _KRAFT,
        minimum=8 * MIB,
    ),
    long("metadata.log.segment.ms", 604_800_000, "Age at which it does.", _KRAFT),
    long("metadata.max.retention.bytes", 100 * MIB, "Metadata log and snapshots kept, by size.", _KRAFT),
    long("metadata.max.retention.ms", 604_800_000, "Metadata log and snapshots kept, by age.", _KRAFT),
    whole(
        "metadata.max.idle.interval.ms",
        500,
        "An idle leader of the quorum writes a no-op this often.",
        f"{_KRAFT}, KIP-835",
        minimum=0,
    ),
)

TRANSACTIONS: Final[tuple[Setting, ...]] = (
    whole(
        "transaction.max.timeout.ms",
        900_000,
        "Longest time-out that a transaction may ask for.",
        "TransactionStateManagerConfig, KIP-98",
        minimum=1,
    ),
    whole(
        "transactional.id.expiration.ms",
        604_800_000,
        "An idle transactional id is forgotten after this.",
        "TransactionStateManagerConfig",
        minimum=1,
    ),
    whole(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10_000,
        "How often overdue transactions are aborted.",
        "TransactionStateManagerConfig",
        minimum=1,
    ),
    whole(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3_600_000,
        "How often idle transactional ids are looked for.",
        "TransactionStateManagerConfig",
        minimum=1,
    ),
    flag(
        "transaction.two.phase.commit.enable",
        False,
        "A transaction may wait for its coordinator outside Kafka without time-out.",
        "TransactionStateManagerConfig, KIP-939",
        since="4.1",
    ),
    whole(
        "add.partitions.to.txn.retry.backoff.ms",
        20,
        "First pause of the broker before it verifies a transaction again.",
        "AddPartitionsToTxnConfig",
        minimum=1,
        since="4.0",
    ),
    whole(
        "add.partitions.to.txn.retry.backoff.max.ms",
        100,
        "Longest time that the broker verifies a transaction again.",
        "AddPartitionsToTxnConfig",
        minimum=0,
        since="4.0",
    ),
    whole(
        "transaction.state.log.num.partitions",
        50,
        "Partitions of __transaction_state.",
        "TransactionLogConfig",
        minimum=1,
    ),
    small(
        "transaction.state.log.replication.factor",
        3,
        "Replicas of __transaction_state.",
        "TransactionLogConfig",
        minimum=1,
    ),
    whole(
        "transaction.state.log.min.isr",
        2,
        "In-sync replicas that a write to it needs.",
        "TransactionLogConfig",
        minimum=1,
    ),
    whole(
        "transaction.state.log.load.buffer.size",
        5 * MIB,
        "Bytes read at a time when transactions are loaded.",
        "TransactionLogConfig",
        minimum=1,
    ),
    whole("transaction.state.log.segment.bytes", 100 * MIB, "Its segments' size.", "TransactionLogConfig", minimum=1),
    flag(
        "transaction.partition.verification.enable",
        True,
        "A transactional append is checked with the coordinator.",
        "TransactionLogConfig, KIP-890",
    ),
    whole(
        "producer.id.expiration.ms",
        86_400_000,
        "An idle producer's sequence numbers are forgotten after this.",
        "TransactionLogConfig, KIP-854",
        minimum=1,
    ),
    whole(
        "producer.id.expiration.check.interval.ms",
        600_000,
        "How often idle producers are looked for.",
        "TransactionLogConfig",
        minimum=1,
        internal=True,
    ),
)
