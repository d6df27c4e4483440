"""Released brokers in processes of their own, and a client of theirs.

Nodes 1, 2 and 3 are brokers and controllers, the others brokers alone; racks are dealt round-robin, so that nodes 1 and
4 share rack `a`. No process outlives the context manager; every wait is bounded, and one that ends says what the broker
printed last. One process of `tests.kafka.jvm` is producer, consumer, Admin client and tools (java/ClusterClient.java).
"""

from __future__ import annotations

import functools
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import attrs

from broker.releases import NEWEST, Release
from tests.kafka.jvm import KafkaJvm, java_command

CONTROLLER_COUNT: Final = 3
RACKS: Final = ("a", "b", "c")
CLUSTER_ID: Final = "brokersideTestCluster1"
START_SECONDS_MAX: Final = 120
STOP_SECONDS_MAX: Final = 120
MEMORY: Final = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Little memory, and the compiler that is fast at once: a node lives for a minute or two."""

MAP: Final = "listener.security.protocol.map"
SETTINGS: Final = {
    "process.roles": "broker",
    "controller.listener.names": "CONTROLLER",
    MAP: "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "log.cleaner.threads": "1",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "background.threads": "2",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "6000",
    "replica.fetch.wait.max.ms": "100",
    "replica.lag.time.max.ms": "6000",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "controlled.shutdown.enable": "false",
    "log.index.size.max.bytes": "65536",
    "log.retention.ms": "-1",
    "log.cleaner.enable": "false",
}
"""What differs from Kafka's defaults: small threads and tables, quick to see a broker gone, nothing cleaned or lost.

No controlled shutdown: nodes that stop together take the quorum with them, and a broker then waits five minutes for a
controller's leave. Its logs are closed cleanly with it and without it.
"""

More = Callable[[int, int], Mapping[str, str]]


def _nothing(_port: int, _other: int) -> Mapping[str, str]:
    return {}


class ClusterError(AssertionError):
    """A node or the client did not do what was asked; the message says what it printed last."""


@attrs.define
class Node:
    """One broker: its folder, and its process while it runs."""

    id: int
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def logs(self) -> Path:
        """Return the log directory."""
        return self.folder / "logs"

    @property
    def rack(self) -> str:
        """Return the rack."""
        return RACKS[(self.id - 1) % len(RACKS)]

    def printed(self) -> str:
        """Return the end of what the broker printed."""
        path = self.folder / "output.txt"
        return path.read_text("utf-8", "replace")[-2000:] if path.exists() else ""


class Cluster:
    """Nodes of one release and their client. Use it as a context manager."""

    def __init__(self, java: list[str], nodes: tuple[Node, ...], kafka: KafkaJvm) -> None:
        self.java = java
        self.nodes = {node.id: node for node in nodes}
        self._kafka = kafka

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer to a call of java/ClusterClient.java; raise KafkaThrewError for an exception."""
        answer: dict[str, Any] = self._kafka.call("cluster", does=name, **arguments)
        return answer

    @classmethod
    def start(cls, folder: Path, release: Release = NEWEST, *, node_count: int, more: More = _nothing) -> Cluster:
        """Format the directories of `node_count` nodes, start all at once, and wait until they serve.

        `more` returns further settings of a node, its listeners among them, for two ports that are free.
        Raises KafkaUnavailableError, with the reason, where Java, Maven or the jars cannot be had.
        """
        kafka = KafkaJvm.start(folder / "build", release)
        java, *class_path = java_command(folder / "build", release)
        ports = _free_ports(3 * node_count + CONTROLLER_COUNT)
        nodes = tuple(Node(1 + place, folder / f"node-{1 + place}", ports[place]) for place in range(node_count))
        voters = ",".join(f"{1 + place}@127.0.0.1:{ports[node_count + place]}" for place in range(CONTROLLER_COUNT))
        for node in nodes:
            node.folder.mkdir(parents=True)
            given = more(*ports[-2 * node.id :][:2])
            (node.folder / "server.properties").write_text(_properties(node, voters, given), "utf-8")
        cluster = cls([java, *MEMORY, *class_path], nodes, kafka)
        with ExitStack() as unless_started:
            unless_started.push(cluster)
            files = [str(node.folder / "server.properties") for node in nodes]
            cluster.call("connect", servers=",".join(f"127.0.0.1:{node.port}" for node in nodes))
            cluster.call("format", cluster=CLUSTER_ID, properties=files)
            cluster.run(node.id for node in nodes)
            unless_started.pop_all()
        return cluster

    def run(self, node_ids: Iterable[int]) -> None:
        """Start nodes together and wait until each has printed that it started."""
        started = [self.nodes[each] for each in node_ids]
        for node in started:
            assert node.process is None, node.id
            with (node.folder / "output.txt").open("wb") as output:
                command = [*self.java, "kafka.Kafka", str(node.folder / "server.properties")]
                node.process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=node.folder
                )
        for node in started:
            self.wait(functools.partial(_is_serving, node), f"node {node.id} to serve", START_SECONDS_MAX)

    def kill(self, *node_ids: int) -> None:
        """End nodes as kill -9 does, all before any is waited for."""
        for each in node_ids:
            self._process(each).kill()
        for each in node_ids:
            self._process(each).wait()
            self.nodes[each].process = None

    def stop(self, *node_ids: int) -> None:
        """Shut nodes down in order, together."""
        for each in node_ids:
            self._process(each).send_signal(signal.SIGTERM)
        for each in node_ids:
            try:
                self._process(each).wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                raise ClusterError(f"node {each} does not stop: {self.nodes[each].printed()}") from None
            self.nodes[each].process = None

    def wait(self, condition: Callable[[], bool], what: str, seconds_max: float = 120) -> None:
        """Return when a condition holds; raise ClusterError with what the nodes printed if it does not in time."""
        deadline = time.monotonic() + seconds_max
        while not condition():
            if time.monotonic() > deadline:
                said = "\n".join(f"node {node.id}: {node.printed()[-600:]}" for node in self.nodes.values())
                raise ClusterError(f"waited {seconds_max} seconds for {what}\n{said}")
            time.sleep(0.2)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill(*(node.id for node in self.nodes.values() if node.process is not None))
        self._kafka.__exit__(kind, error, trace)

    def _process(self, node_id: int) -> subprocess.Popen[bytes]:
        process = self.nodes[node_id].process
        assert process is not None, f"node {node_id} does not run"
        return process


def _properties(node: Node, voters: str, more: Mapping[str, str]) -> str:
    settings: Mapping[str, str] = {
        **SETTINGS,
        "node.id": str(node.id),
        "broker.rack": node.rack,
        "log.dirs": str(node.logs),
        "controller.quorum.voters": voters,
        "listeners": f"PLAINTEXT://127.0.0.1:{node.port}",
    }
    if node.id <= CONTROLLER_COUNT:
        port = voters.split(",")[node.id - 1].rpartition(":")[2]
        both = {"process.roles": "broker,controller"}
        settings = {**settings, **both, "listeners": f"{settings['listeners']},CONTROLLER://127.0.0.1:{port}"}
    joined = {name: f"{settings[name]},{more[name]}" for name in ("listeners", MAP) if name in more}
    return "".join(f"{name}={value}\n" for name, value in {**settings, **more, **joined}.items())


def _is_serving(node: Node) -> bool:
    assert node.process is not None
    if node.process.poll() is not None:
        raise ClusterError(f"node {node.id} ended with status {node.process.returncode}: {node.printed()}")
    with socket.socket() as trial:
        trial.settimeout(1)
        return trial.connect_ex(("127.0.0.1", node.port)) == 0


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
