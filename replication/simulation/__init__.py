"""Run a cluster of brokers on a virtual clock under faults and check the invariants at every step.

- liveness: Find what a cluster still lacks after all faults are over; restart brokers that are replaced.
- promptness: Watch lagging followers (L15) and the writes of partitions (L16) while faults last.
- run: Run a simulation from its seed to its verdict: a safety phase under faults, then a liveness phase without.
- cluster: Run a whole cluster in one thread: nodes, controller and clients on a virtual clock.
- options: Define the options of a simulation: the cluster, its clients, the network, and the rate of each fault.
- fault: Define one fault: when it starts, what it strikes, for how long.
- faults: Draw the plan of faults before a run starts; this decides what fails, and when.
- fault_injection: Apply the faults of a plan to a cluster and undo them.
- plan_file: Write a plan of faults as JSON, and read it.
- watching: Check invariants of the caller's own at every event.
- network: Decide when a message between nodes arrives, whether it arrives, and how often.
- node: Model a machine with a disk on which a broker's process runs, dies and starts again.
- varied: Draw options of every kind from a seed: settings as clusters have them, and every fault.
- disks: Let the disks of a machine fail: full, broken in one log directory, or without blocks that were never flushed.
- moves: Draw the reassignments of fault injection: what an operator orders, whatever the partition is doing.
- wider_faults: Apply the faults that are of no single broker's process: splits, controllers, late metadata, clocks.
- topic_deletion: Delete topics while they are written, and create others of the same name.
- former_controller: Model a replaced controller unaware of its successor, still asked by some brokers.
- clients: Run producers and consumers that find leaders, write, read, and note the responses.
- history: Hold what happened in a run: a line per state change, a digest, and what the clients wrote and read.
- policies: Policies of one's own: one that places the partitions, and one that elects the leaders.
- retention: Run retention and compaction in a simulation: their settings, their intervals and their faults.
- views: Show one partition of a running simulation: its state, its replicas' logs, and its replicas out of sync.
- recording: Record each state of each partition, and each ISR shrink, over time.
- tally: Add up the verdicts of many runs, as lines and as JSON.
- report: Report a run in lines: its options, its verdict, the rules that a release lacks, its smallest plan.
"""

from __future__ import annotations

from replication.checkers import Finding
from replication.roles.messages import CONTROLLER
from replication.simulation.cluster import Cluster
from replication.simulation.fault import Fault, FollowerOf, LeaderOf
from replication.simulation.faults import draw_plan
from replication.simulation.options import FaultKind, NetworkOptions, Options, harsh, quiet, swarm
from replication.simulation.plan_file import plan_json, read_plan
from replication.simulation.policies import elected_by, placed
from replication.simulation.report import shrink
from replication.simulation.retention import with_retention
from replication.simulation.run import Extension, Outcome, Simulation, run
from replication.simulation.varied import varied
from replication.simulation.views import OutOfSyncView, PartitionView, ReplicaView
from replication.simulation.watching import Event, OwnInvariant

__all__ = (
    "CONTROLLER",
    "Cluster",
    "Event",
    "Extension",
    "Fault",
    "FaultKind",
    "Finding",
    "FollowerOf",
    "LeaderOf",
    "NetworkOptions",
    "Options",
    "OutOfSyncView",
    "Outcome",
    "OwnInvariant",
    "PartitionView",
    "ReplicaView",
    "Simulation",
    "draw_plan",
    "elected_by",
    "harsh",
    "placed",
    "plan_json",
    "quiet",
    "read_plan",
    "run",
    "shrink",
    "swarm",
    "varied",
    "with_retention",
)
