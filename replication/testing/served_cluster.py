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
from broker.entropy import JavaRandom, SplitMix64, derive
from broker.errors import UsageError
from broker.ids import BrokerId
from broker.units import MINUTE_MS, SECOND_MS, DurationMs, TimeMs
from broker.wording import first_of
from log.batches.in_buffer import batches_in
from log.log_config import LOG_APPEND_TIME, NAMES
from log.record import Record
from placement import StripedPlacer
from placement.spec import PlacementSpec, rows_placed
from replication.checkers import Finding
from replication.groups.hosted_coordinator import HostedCoordinator, HostedRoleOptions
from replication.groups.shard import Shard, service_options
from replication.retention.log_manager import LogManager
from replication.roles.broker_role import BrokerRole
from replication.roles.hosted import Host
from replication.roles.messages import CONTROLLER, AlterConfigs, CreateTopic, Message, NodeId
from replication.roles.outbox import Outbox
from replication.roles.states.lifecycle import LifecycleState
from replication.simulation.cluster import Cluster
from replication.simulation.disks import let_disks_fail
from replication.simulation.retention import run_retention_regularly
from replication.simulation.run import Outcome, Simulation
from replication.testing import configs_api
from replication.testing.client_writes import ClientWrites
from replication.testing.cluster_spec import ClusterSpec, TopicSpec
from replication.testing.connection import Connection, Interference, Sink
from replication.testing.fault_watch import FaultWatch, OnNotice, discard
from replication.testing.gateway import Endpoint, Gateway, Shared
from replication.testing.served import HANDLERS
from replication.testing.topics import OFFSETS_TOPIC, PARTITION_COUNT_MAX, Topic, Topics, directory_name, visible

FIRST_PORT: Final = 9_092
_STARTED_MS_MAX: Final = 60_000
_STEP_MS: Final = 50
_NAMED_MAX: Final = 10
_HOSTED_STREAM: Final = 22
_PLACING_STREAM: Final = 23
_RETENTION_DELAY_MS: Final = 30 * SECOND_MS
"""log.initial.task.delay.ms by default."""
_RETENTION_CHECK_MS: Final = DurationMs(5 * MINUTE_MS)
"""log.retention.check.interval.ms by default."""
_LOAD_MS_MAX: Final = DurationMs(50)


class ModelError(RuntimeError):
    """Report that the model of the cluster raised an error: a bug of this library."""


class ServedCluster:
    """Hold a running cluster and its connections."""

    def __init__(self, spec: ClusterSpec, on_fault: OnNotice = discard) -> None:
        self.spec = spec
        self.interference = Interference()
        self.gateways: dict[BrokerId, Gateway] = {}
        self.topics = Topics(spec.seed, spec.partition_count(OFFSETS_TOPIC))
        for name in spec.topics:
            if name != OFFSETS_TOPIC:
                self.topics.add(name, spec.partition_count(name))
            if given := spec.replicas_given(name):
                self.topics.configure(name, given.configs)
        ports = spec.ports or range(FIRST_PORT, FIRST_PORT + spec.brokers)
        self.endpoints: dict[BrokerId, Endpoint] = {
            broker: Endpoint(spec.host, port, spec.rack_of[broker])
            for broker, port in zip(spec.ids, ports, strict=True)
        }
        self._writes = ClientWrites()
        self._shared = Shared(
            topics=self.topics,
            endpoints=self.endpoints,
            handlers=HANDLERS,
            note_write=self._writes.note,
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
        self.simulation = Simulation(
            spec.options(), spec.faults, extension=_Joined(self), checker=self._writes.new_checker
        )
        self._writes.cluster = self.cluster
        self.faults = FaultWatch(self.cluster, self.simulation.fault_injector, on_fault)
        """What has become of the faults of the plan."""
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
        """Run until the topics are there, and those down are fenced; raise UsageError if that does not come about."""
        self.cluster.at(0, self._create)
        self._wait(self._is_ready)
        for broker in sorted(self.spec.down):
            self.cluster.nodes[broker].kill()
        self._wait(self._is_ready)

    def _wait(self, is_there: Callable[[], bool]) -> None:
        end_ms = self.now_ms + _STARTED_MS_MAX
        while not is_there():
            if self.now_ms > end_ms:
                raise UsageError("the topics of the cluster could not be created within a minute of simulated time")
            self.advance(self.now_ms + _STEP_MS)

    def advance(self, end_ms: int) -> None:
        """Run all events up to `end_ms`, or until `interrupt`; raise ModelError if the model fails.

        The run is over then, and its outcome has the finding.
        """
        try:
            self.cluster.advance(TimeMs(max(end_ms, self.now_ms)))
            self._writes.settle()
        except Exception as error:
            self.simulation.fail(error)
            raise ModelError(f"seed {self.spec.seed}: {type(error).__name__}: {error}") from error

    def interrupt(self) -> None:
        """Let `advance` end at once: a client has something to do."""
        self.cluster.interrupt()

    def _break_connections(self, broker: BrokerId) -> None:
        """Break the connections to a process that has ended."""
        for connection in [each for each in self.connections if BrokerId(each.receiver.node) == broker]:
            connection.abort("its broker's process has ended")

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
                self._order(topic)
        if missing:
            self.cluster.at(self.now_ms + _STEP_MS, self._create)

    def _order(self, topic: Topic) -> None:
        """Order the settings and the partitions of a topic from the controller."""
        configs = dict(topic.configs)
        given = self.spec.replicas_given(topic.name) or TopicSpec(tuple(self._rows(topic)))
        if configs or topic.is_internal:
            policy: dict[str, Any] = {"cleanup.policy": ("compact",)} if topic.is_internal else {}
            self._configure_logs(topic.numbers, {**policy, **configs_api.of_logs(configs)})
        for record in configs_api.records(topic.numbers, configs) if configs else ():
            self.cluster.deliver(CONTROLLER, AlterConfigs(record))
        for index, (number, row) in enumerate(zip(topic.numbers, given.replicas, strict=True)):
            order = CreateTopic(number, row, directory_name(topic.name, index), given.leader(index))
            self.cluster.deliver(CONTROLLER, order)

    def _rows(self, topic: Topic) -> list[tuple[BrokerId, ...]]:
        alive = [broker for broker in self.spec.ids if broker not in self.spec.down]
        brokers = [BrokerView(id=broker, rack=self.endpoints[broker].rack) for broker in alive]
        spec = PlacementSpec(0, len(topic.numbers), self.spec.replication_factor)
        entropy = JavaRandom(derive(self.spec.seed, _PLACING_STREAM, topic.numbers[0]))
        return [tuple(map(BrokerId, row)) for row in rows_placed(StripedPlacer(), spec, brokers, entropy).tolist()]

    def _is_ready(self) -> bool:
        """Return whether every broker that runs sees what the controller does, all topics, and coordinates groups.

        A partition has a leader unless all its replicas are down; a broker that is down is fenced.
        """
        image, roles = self.cluster.controller.image, [node.role for node in self.cluster.nodes.values()]
        down = [node.broker for node in self.cluster.nodes.values() if node.role is None]
        return (
            len(list(visible(self.topics, image))) == len(list(self.topics))
            and all(image.brokers[broker].fenced for broker in down)
            and all(state.has_leader or set(state.replicas) <= set(down) for state in image.partitions.values())
            and all(role is None or role.image.partitions == image.partitions for role in roles)
            and not any(shard.is_loading for shard in self._shards())
        )

    def _shards(self) -> Iterator[Shard]:
        for hosted in self._coordinators.values():
            yield from hosted.shards.values()

    # What is asked of it.

    def number_of(self, topic: str, partition: int) -> int:
        """Return the number of a partition; raise UsageError if there is none."""
        found = self.topics.get(topic) if isinstance(topic, str) else None
        if found is not None and type(partition) is int and 0 <= partition < len(found.numbers):
            return found.numbers[partition]
        if found is not None:
            what = f"there is no partition {partition!r} of topic {topic!r}"
            raise UsageError(f"{what}; its partitions are 0 to {len(found.numbers) - 1}")
        known = first_of((each.name for each in self.topics if each.name != OFFSETS_TOPIC), _NAMED_MAX) or "none"
        raise UsageError(f"there is no topic {topic!r}; topics are: {known}")

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
            layout=self.topics,
            service=self._service,
            load_ms_max=_LOAD_MS_MAX,
            wall_clock_ms=self.spec.wall_clock_ms,
        )
        made = self._coordinators[host.broker] = HostedCoordinator(host, options, self._clock, entropy)
        return made


@attrs.frozen
class _Joined:
    """Join the gateways and coordinators to the simulation of a cluster that is being made."""

    served: ServedCluster

    def join(self, cluster: Cluster) -> None:
        """Let every broker host a coordinator and a gateway, which looks at its waiting requests after each event."""
        let_disks_fail(cluster)
        gateways, spec = self.served.gateways, self.served.spec
        racks = list(dict.fromkeys(spec.rack_of.values()))
        for broker, node in cluster.nodes.items():
            name = spec.rack_of[broker]
            node.rack_name = name or ""
            if name is not None:
                node.rack = racks.index(name)
        self.served.take_clock(cluster.clock)

        def look(cluster: Cluster, node: NodeId, message: Message, out: Outbox) -> None:
            if node < CONTROLLER:
                gateways[BrokerId(node)].look(out)

        cluster.host(self.served.new_coordinator)
        cluster.host(lambda host: LogManager(cluster.nodes[host.broker], PARTITION_COUNT_MAX, cleans=False))
        for broker in cluster.nodes:
            run_retention_regularly(cluster, broker, _RETENTION_DELAY_MS, _RETENTION_CHECK_MS)
        cluster.host(self.served.new_gateway)
        cluster.watches.append(look)

    def missing(self, cluster: Cluster) -> str | None:
        """Return None: clients of one's own recover by themselves."""
        return None

    def findings(self, cluster: Cluster) -> Sequence[Finding]:
        """Return nothing: the simulation checks what clients wrote."""
        return ()
