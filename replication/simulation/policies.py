"""Run a simulated cluster with a custom placement policy and a custom election policy.

The same options and placer give the same assignment; the placer draws from Kafka's own generator. The checkers treat
elections like Kafka's own: a leader from outside ISR and ELR needs a setting or an order that allows it (I28). A policy
that answers anything but the election of a replica or of nobody is refused (PolicyError); one that raises ends its run
with a finding.

>>> from broker.units import DurationMs
>>> from placement import StripedPlacer
>>> from replication import Choice, Elected
>>> from replication.simulation import elected_by, placed, quiet, run
>>> placed(quiet(1, DurationMs(60_000)), StripedPlacer()).assignment
((2, 0, 1), (0, 1, 2))
>>> def last_in_sync(ballot, election, rules):
...     valid = [broker for broker in ballot.replicas if ballot.is_valid(broker)]
...     return Elected(valid[-1], Choice.IN_SYNC) if valid else Elected(-1, Choice.NOBODY)
>>> run(elected_by(quiet(1, DurationMs(20_000)), last_in_sync)).is_clean
True

Source: Kafka ReplicationControlManager.createTopic, 4.0, and PartitionChangeBuilder.electLeader, 4.3.1.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.cluster import BrokerView
from broker.entropy import JavaRandom, derive
from broker.errors import UsageError
from broker.ids import BrokerId
from placement.spec import PlacementSpec, ReplicaPlacer, rows_placed
from replication.rules.election import ElectionPolicy
from replication.simulation.options import Options

_PLACING_STREAM: Final = 9


def placed(options: Options, placer: ReplicaPlacer) -> Options:
    """Return the options with an assignment of all partitions by `placer`, drawn from the options' seed.

    Broker b is in rack b modulo the number of racks. Call it last, when the numbers of partitions and brokers are
    final. Raises RefusedError where the placer does.
    """
    if not isinstance(placer, ReplicaPlacer):
        raise UsageError(f"the placer is {placer!r}; wanted is an object with place(spec, brokers, entropy)")
    brokers = [BrokerView(id=b, rack=f"rack-{place % options.racks}") for place, b in enumerate(options.ids)]
    spec = PlacementSpec(0, options.partition_count, options.replication_factor)
    rows = rows_placed(placer, spec, brokers, JavaRandom(derive(options.seed, _PLACING_STREAM))).tolist()
    return attrs.evolve(options, assignment=tuple(tuple(map(BrokerId, row)) for row in rows))


def elected_by(options: Options, policy: ElectionPolicy) -> Options:
    """Return the options with leaders elected by `policy`; raise UsageError in ZooKeeper mode."""
    if options.role_settings.has_zookeeper:
        raise UsageError("an election policy of one's own needs a KRaft controller; leave ZooKeeper mode out")
    if not callable(policy):
        raise UsageError(f"the election policy is {policy!r}; wanted is a function of ballot, election and rules")
    return attrs.evolve(options, role_settings=attrs.evolve(options.role_settings, policy=policy))
