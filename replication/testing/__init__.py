"""Serve a simulated cluster to real clients: on sockets in real time, or to an asyncio program on virtual time.

- app_cli: Run `brokerside simulate --app`.
- cli: Define `brokerside serve`.
- serve_options: Read its topics and faults in words.
- serve_spec: Make a cluster's description from its options.
- like: Describe a cluster that is like a real one, without its records.
- fault_watch: Say when each fault strikes and is over, and count those that struck.
- cluster_spec: Describe a cluster to serve: `ClusterSpec`.
- kafka: Hand a cluster to a test: ask it, break it, look at what it holds; `kafka_cluster`.
- virtual: Run an asyncio program against a cluster on virtual time; `run_virtual`.
- server_end: Connect a client's socket to a broker, and bound the memory that clients take.
- sockets: Serve a cluster on sockets of 127.0.0.1 in real time.
- app: Run an application under drawn faults, seed after seed, and shrink the faults that break it.
- client_bugs: Reproduce open bugs of public clients.
- virtual_process: Give a thread the loop's clock, and refuse there what waits in real time.
- virtual_loop: An event loop whose clock is the simulation's.
- served_cluster: Join a simulation, its gateways, coordinators, topics and connections.
- client_writes: Note what clients wrote, and let the checkers forget what is settled.
- connection: Carry one client's connection to one run of a broker.
- served: The table of requests that are served, by API and version.
- records_api: Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, InitProducerId.
- groups_api: Requests of groups, classic and KIP-848, and of their offsets.
- group_admin_api: Groups listed, described and deleted.
- log_admin_api: DescribeLogDirs and DeleteRecords.
- configs_api: DescribeConfigs and IncrementalAlterConfigs.
- reassignment_api: Partitions moved, and leaders elected.
- metadata_api: Metadata, DescribeTopicPartitions and DescribeCluster.
- topics_api: Topics created, grown and deleted.
- gateway: The hosted role that answers clients on one broker.
- topics: Names, ids and partition numbers of the topics.
- entities: Frames of Kafka's protocol to values and back.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from replication.testing.cluster_spec import ClusterSpec, TopicSpec
    from replication.testing.kafka import ClusterBrokenError, Kafka, Verdict, kafka_cluster
    from replication.testing.virtual import run_virtual
else:  # These need the extra clients; `brokerside serve --help` does not.
    _MODULES = {"ClusterSpec": "cluster_spec", "TopicSpec": "cluster_spec", "run_virtual": "virtual"}

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"replication.testing.{_MODULES.get(name, 'kafka')}"), name)


__all__ = ("ClusterBrokenError", "ClusterSpec", "Kafka", "TopicSpec", "Verdict", "kafka_cluster", "run_virtual")
