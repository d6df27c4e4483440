"""Run a simulated cluster whose clients are real ones, on whatever clock its driver has.

A driver calls `advance` with the time in ms since the start, hands over frames, and asks when the next event is:
`virtual` from an event loop whose clock is the simulation's, `sockets` from one of real time. Reads are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from broker.clock import Clock
from broker.cluster import BrokerView
from broker.config import Scope, format_value
from broker.entropy import JavaRandom, SplitMix64, derive
from broker.error_codes import ErrorCode
from broker.errors import BrokersideError, UsageError
from broker.ids import NO_LEADER, BrokerId, Offset
from broker.units import DAY_MS, DurationMs, TimeMs
from log.batches.in_buffer import batches_in
from log.log_config import CREATE_TIME, LOG_APPEND_TIME, NAMES
from log.record import Record
from placement import StripedPlacer
from placement.spec import PlacementSpec, rows_placed
from replication.checkers import Finding
from replication.groups.hosted_coordinator import HostedCoordinator, HostedRoleOptions
from replication.groups.shard import Shard, service_options
from replication.retention.log_manager import LogManager
from replication.roles.broker_role import BrokerRole
from replication.roles.hosted import Host
from replication.roles.messages import CONTROLLER, CreateTopic, Message, NodeId
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.roles.states.lifecycle import LifecycleState
from replication.rules.produce import Fate
from replication.rules.settings import PartitionSettings
from replication.simulation.cluster import Cluster
from replication.simulation.fault import Fault
from replication.simulation.options import WALL_CLOCK_MS, NetworkOptions, Options
from replication.simulation.run import Outcome, Simulation
from replication.testing import configs_api
from replication.testing.connection import Connection, Interference, Sink
from replication.testing.gateway import Endpoint, Gateway, Shared
from replication.testing.log_admin_api import LOG_DIRECTORY
from replication.testing.served import HANDLERS
from replication.testing.topics import OFFSETS_TOPIC, PARTITION_COUNT_MAX, Topic, Topics, directory_name, visible

OFFSETS_PARTITION_COUNT: Final = 4
FIRST_PORT: Final = 9_092
_STARTED_MS_MAX: Final = 60_000
_STEP_MS: Final = 50
_HOSTED_STREAM: Final = 22
_PLACING_STREAM: Final = 23
_DURATION_MS: Final = DurationMs(30 * DAY_MS)
_LOAD_MS_MAX: Final = DurationMs(50)


class ModelError(RuntimeError):
    """Report that the model of the cluster raised an error: a bug of this library."""


@attrs.frozen(kw_only=True)
class ClusterSpec:
    """Describe a cluster to serve; impossible values raise UsageError.

    `topics` gives each topic's number of partitions; `racks` are the brokers' racks in turn; `factor` is the
    replication factor of every topic, `min_insync_replicas` likewise.
    """

    brokers: int = 3
    racks: tuple[str, ...] = ()
    topics: Mapping[str, int] = attrs.field(factory=dict)
    seed: int = 0
    factor: int = 0
    """0: three, or the number of brokers if that is less."""
    min_insync_replicas: int = 0
    """0: one less than the factor, at least one."""
    faults: tuple[Fault, ...] = ()
    auto_create: bool = True
    unclean_election: bool = False
    is_strict: bool = False
    """Whether fewer than min.insync.replicas brokers lose records at one time, whatever the faults say."""
    default_partitions: int = 1
    wall_clock_ms: int = WALL_CLOCK_MS
    """What the brokers' clocks show at the start, in ms since 1970."""
    is_append_time: bool = False
    """Whether leaders stamp the records (message.timestamp.type=LogAppendTime), not the producers."""
    ports: tuple[int, ...] = ()
    host: str = "127.0.0.1"

    def __attrs_post_init__(self) -> None:
        for topic, count in self.topics.items():
            if count < 1:
                raise UsageError(f"topic {topic!r} has {count} partitions; 1 or more are allowed")
        if not 0 <= self.factor <= self.brokers:
            raise UsageError(f"the replication factor is {self.factor}; {self.brokers} brokers allow 1 to that")

    @property
    def replication_factor(self) -> int:
        """Return the replication factor of every topic."""
        return self.factor or min(3, self.brokers)

    @property
    def min_isr(self) -> int:
        """Return min.insync.replicas of every topic."""
        return self.min_insync_replicas or max(self.replication_factor - 1, 1)

    def rack_of(self, broker: int) -> str | None:
        """Return a broker's rack; None without racks."""
        return self.racks[broker % len(self.racks)] if self.racks else None

    def static_configs(self) -> dict[str, str]:
        """Return the settings in the brokers' server.properties."""
        given = {
            "num.partitions": str(self.default_partitions),
            "default.replication.factor": str(self.replication_factor),
            "auto.create.topics.enable": format_value(self.auto_create),
            "unclean.leader.election.enable": format_value(self.unclean_election),
            "log.message.timestamp.type": LOG_APPEND_TIME if self.is_append_time else CREATE_TIME,
            "offsets.topic.num.partitions": str(OFFSETS_PARTITION_COUNT),
            "offsets.topic.replication.factor": str(self.replication_factor),
            "process.roles": "broker",
            "log.dirs": LOG_DIRECTORY,
        }
        defaults = configs_api.named(Scope.BROKER)
        return {name: value for name, value in given.items() if value != defaults[name].default}

    def options(self) -> Options:
        """Return the options of the simulation: no clients of its own, a network that loses nothing."""
        settings = PartitionSettings(min_isr=self.min_isr, unclean_election=self.unclean_election)
        return Options(
            seed=self.seed,
            brokers=self.brokers,
            racks=len(self.racks) if 0 < len(self.racks) <= self.brokers else self.brokers,
            partitions=0,
            replication_factor=self.replication_factor,
            producers=0,
            consumers=0,
            duration_ms=_DURATION_MS,
            wall_clock_ms=TimeMs(self.wall_clock_ms),
            network=NetworkOptions(delay_ms_max=1),
            is_strict=self.is_strict,
            role_settings=RoleSettings(settings=settings),
            name="served",
        )


class ServedCluster:
    """Hold a running cluster and its connections."""

    def __init__(self, spec: ClusterSpec) -> None:
        self.spec = spec
        self.interference = Interference()
        self.gateways: dict[BrokerId, Gateway] = {}
        self.topics = Topics(spec.seed, OFFSETS_PARTITION_COUNT)
        for name, count in spec.topics.items():
            self.topics.add(name, count)
        ports = spec.ports or tuple(FIRST_PORT + broker for broker in range(spec.brokers))
        self.endpoints: dict[BrokerId, Endpoint] = {
            BrokerId(broker): Endpoint(spec.host, ports[broker], spec.rack_of(broker)) for broker in range(spec.brokers)
        }
        self._shared = Shared(
            topics=self.topics,
            endpoints=self.endpoints,
            handlers=HANDLERS,
            note_write=self._note_write,
            auto_create=spec.auto_create,
            default_partitions=spec.default_partitions,
            default_factor=spec.replication_factor,
            static_configs=spec.static_configs(),
            altered={(configs_api.BROKER, ""): {"min.insync.replicas": str(spec.min_isr)}},
            configure_logs=self._configure_logs,
        )
        self._service = service_options("uniform", self.topics.counts, spec.seed)
        self._coordinators: dict[BrokerId, HostedCoordinator] = {}
        self._hosted_count = 0
        self._request_count = 0
        self.connections: dict[Connection, None] = {}
        """The open connections, in the order in which they were opened."""
        self.simulation = Simulation(spec.options(), spec.faults, extension=_Joined(self))
        for node in self.cluster.nodes.values():
            node.on_end = partial(self._break_connections, node.broker)
            if spec.is_append_time:
                node.config = attrs.evolve(node.config, timestamp_type=LOG_APPEND_TIME)

    @property
    def cluster(self) -> Cluster:
        """Return the cluster of the simulation."""
        return self.simulation.cluster

    @property
    def now_ms(self) -> TimeMs:
        """Return the time since the start in ms."""
        return self.cluster.now_ms

    @property
    def next_event_ms(self) -> TimeMs:
        """Return when something happens next without a client."""
        return self.cluster.next_event_ms

    # Driving.

    def begin(self) -> None:
        """Run until the topics are there; raise UsageError if they do not appear."""
        self.cluster.at(0, self._create)
        while not self._is_ready():
            if self.now_ms > _STARTED_MS_MAX:
                raise UsageError("the topics of the cluster could not be created within a minute of simulated time")
            self.advance(self.now_ms + _STEP_MS)

    def advance(self, end_ms: int) -> None:
        """Run all events up to `end_ms`, or until `interrupt`; raise ModelError if the model fails.

        The run is over then, and its outcome has the finding.
        """
        try:
            self.cluster.advance(TimeMs(max(end_ms, self.now_ms)))
        except Exception as error:
            self.simulation.fail(error)
            raise ModelError(f"seed {self.spec.seed}: {type(error).__name__}: {error}") from error

    def interrupt(self) -> None:
        """Let `advance` end at once: a client has something to do."""
        self.cluster.interrupt()

    def _break_connections(self, broker: BrokerId) -> None:
        """Break the connections to a process that has ended."""
        for connection in [each for each in self.connections if BrokerId(each.receiver.node) == broker]:
            connection.close("its broker's process has ended")

    def accepts(self, broker: BrokerId) -> bool:
        """Return whether a broker listens: its process runs and has been unfenced."""
        role = self.cluster.nodes[broker].role
        return role is not None and role.lifecycle is not LifecycleState.STARTING and role.epoch is not None

    def connect(self, broker: BrokerId, sink: Sink) -> Connection | None:
        """Open a connection to a broker; None if it does not listen."""
        if not self.accepts(broker):
            return None
        made = Connection(self.cluster, self.cluster.nodes[broker].address, sink, self.interference, self._number)
        made.on_close = partial(self.connections.pop, made)
        self.connections[made] = None
        return made

    def _number(self) -> int:
        self._request_count += 1
        return self._request_count

    # Topics.

    def _create(self) -> None:
        """Have the controller create what is missing, and look again; brokers must be unfenced for that."""
        image = self.cluster.controller.image
        missing = [topic for topic in self.topics if any(number not in image.partitions for number in topic.numbers)]
        if image.brokers and all(not status.fenced for status in image.brokers.values()):
            for topic in missing:
                for number, row in zip(topic.numbers, self._rows(topic), strict=True):
                    name, index = self.topics.place_of(number)
                    self.cluster.deliver(CONTROLLER, CreateTopic(number, row, directory_name(name, index)))
        if missing:
            self.cluster.at(self.now_ms + _STEP_MS, self._create)

    def _rows(self, topic: Topic) -> list[tuple[BrokerId, ...]]:
        brokers = [BrokerView(id=broker, rack=each.rack) for broker, each in sorted(self.endpoints.items())]
        spec = PlacementSpec(0, len(topic.numbers), self.spec.replication_factor)
        entropy = JavaRandom(derive(self.spec.seed, _PLACING_STREAM, topic.numbers[0]))
        return [tuple(map(BrokerId, row)) for row in rows_placed(StripedPlacer(), spec, brokers, entropy).tolist()]

    def _is_ready(self) -> bool:
        """Return whether every broker sees every topic, with a leader for each partition, and coordinates groups."""
        roles = [node.role for node in self.cluster.nodes.values()]
        return all(
            role is not None
            and len(list(visible(self.topics, role.image))) == len(list(self.topics))
            and all(state.leader != NO_LEADER for state in role.image.partitions.values())
            for role in roles
        ) and not any(shard.is_loading for shard in self._shards())

    def _shards(self) -> Iterator[Shard]:
        for hosted in self._coordinators.values():
            yield from hosted.shards.values()

    # What is asked of it.

    def number_of(self, topic: str, partition: int) -> int:
        """Return the number of a partition; raise UsageError if there is none."""
        number = self.topics.number_of(topic, partition)
        if number is None:
            known = ", ".join(each.name for each in self.topics if each.name != OFFSETS_TOPIC) or "none"
            raise UsageError(f"there is no partition {partition} of topic {topic!r}; topics are: {known}")
        return number

    def records(self, topic: str, partition: int) -> tuple[Record, ...]:
        """Return the committed records in the log of a partition's leader; none without a leader."""
        log = self.cluster.leader_log(self.number_of(topic, partition))
        if log is None:
            return ()
        read = log.log.read(log.state.start_offset, 1 << 30)
        end_offset = log.state.high_watermark
        return tuple(
            record
            for batch in batches_in(bytes(read.records))
            if not batch.is_control
            for record in batch.records()
            if record.offset < end_offset
        )

    def finish(self) -> Outcome:
        """End all faults, let the cluster recover, check everything, and return the outcome."""
        for connection in list(self.connections):
            connection.close()
        self.simulation.options = attrs.evolve(self.simulation.options, duration_ms=DurationMs(max(self.now_ms, 1)))
        return self.simulation.finish()

    # What clients wrote.

    def _note_write(self, number: int, acks: int, records: bytes, now_ms: TimeMs) -> Callable[[ErrorCode, int], None]:
        history, sent_ms = self.cluster.history, self.now_ms
        try:
            sent = [record for batch in batches_in(records) for record in batch.records()]
        except BrokersideError:
            sent = []  # The log refuses them, too.
        writes = []
        for record in sent:
            write = history.write(number, acks, sent_ms)
            write.value = int.from_bytes(record.value or b"", "big")
            writes.append(write)

        def note(error: ErrorCode, offset: int) -> None:
            for place, write in enumerate(writes):
                # A client that gets an error may write the batch again: nothing failed for certain.
                write.fate = Fate.ACKED if error is ErrorCode.NONE else Fate.UNKNOWN
                write.answered_ms = self.now_ms
                write.offset = Offset(offset + place if offset >= 0 else -1)

        return note

    # The hosted roles.

    def take_clock(self, clock: Clock) -> None:
        """Take the clock of the cluster, by which coordinators time their groups; called before brokers start."""
        self._clock = clock

    def new_gateway(self, host: Host) -> Gateway:
        """Return the gateway of a broker that starts."""
        assert isinstance(host, BrokerRole), host
        made = self.gateways[host.broker] = Gateway(host, self._shared)
        return made

    def _configure_logs(self, numbers: tuple[int, ...], settings: Mapping[str, Any]) -> None:
        """Set the settings of partitions' logs on every broker; those not named are the broker's."""
        fields = {NAMES[name]: value for name, value in settings.items() if name in NAMES}
        policy = settings.get("cleanup.policy", ("delete",))
        fields |= {"compacts": "compact" in policy, "deletes": "delete" in policy}
        for node in self.cluster.nodes.values():
            config = attrs.evolve(node.config, **fields)
            for number in numbers:
                node.log_configs[number] = config
                if number in node.logs:
                    node.logs[number].log.config = config

    def new_coordinator(self, host: Host) -> HostedCoordinator:
        """Return the group coordinator of a broker that starts."""
        self._hosted_count += 1
        entropy = SplitMix64(derive(self.spec.seed, _HOSTED_STREAM, self._hosted_count))
        options = HostedRoleOptions(
            layout=self.topics, service=self._service, load_ms_max=_LOAD_MS_MAX, wall_clock_ms=WALL_CLOCK_MS
        )
        made = self._coordinators[host.broker] = HostedCoordinator(host, options, self._clock, entropy)
        return made


@attrs.frozen
class _Joined:
    """Join the gateways and coordinators to the simulation of a cluster that is being made."""

    served: ServedCluster

    def join(self, cluster: Cluster) -> None:
        """Let every broker host a coordinator and a gateway, which looks at its waiting requests after each event."""
        gateways = self.served.gateways
        self.served.take_clock(cluster.clock)

        def look(cluster: Cluster, node: NodeId, message: Message, out: Outbox) -> None:
            if node < CONTROLLER:
                gateways[BrokerId(node)].look(out)

        cluster.host(self.served.new_coordinator)
        cluster.host(lambda host: LogManager(cluster.nodes[host.broker], PARTITION_COUNT_MAX))
        cluster.host(self.served.new_gateway)
        cluster.watches.append(look)

    def missing(self, cluster: Cluster) -> str | None:
        """Return None: clients of one's own recover by themselves."""
        return None

    def findings(self, cluster: Cluster) -> Sequence[Finding]:
        """Return nothing: the simulation checks what clients wrote."""
        return ()
