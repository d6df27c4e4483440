"""Let a policy of somebody's own elect the leaders of a simulated cluster.

The checkers judge its elections like Kafka's own: a leader from outside ISR and ELR needs a setting or an order that
allows it (I28), and must have every committed record otherwise. A policy that raises, or elects a broker that is no
replica, ends its run with a finding.

Example: a policy that elects the last replica in sync instead of the first.

>>> from broker.units import DurationMs
>>> from replication import Choice, Elected
>>> from replication.simulation import elected_by, quiet, run
>>> def last_in_sync(ballot, election, rules):
...     valid = [broker for broker in ballot.replicas if ballot.is_valid(broker)]
...     return Elected(valid[-1], Choice.IN_SYNC) if valid else Elected(-1, Choice.NOBODY)
>>> run(elected_by(quiet(1, DurationMs(20_000)), last_in_sync)).is_clean
True

Source: Kafka metadata PartitionChangeBuilder.electLeader, 4.3.1, which the policy takes the place of.
"""

from __future__ import annotations

import attrs

from broker.errors import UsageError
from replication.rules.election import ElectionPolicy
from replication.simulation.options import Options


def elected_by(options: Options, policy: ElectionPolicy) -> Options:
    """Return the options with leaders elected by `policy`; raise UsageError in ZooKeeper mode."""
    if options.role_settings.has_zookeeper:
        raise UsageError("an election policy of one's own needs a KRaft controller; leave ZooKeeper mode out")
    return attrs.evolve(options, role_settings=attrs.evolve(options.role_settings, policy=policy))
