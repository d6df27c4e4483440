"""Define every state machine of the simulation as a table: the roles step by it, and commands draw it.

- lifecycle: Define the states of a broker process as a table (BrokerLifecycleManager).
- partition_status: Define a partition's states at the controller as two tables: leadership and reassignment.
- replica_role: Define the roles of a replica at its broker as a table: leading, fetching, truncating and so on.
- write: Define the states of one write at its leader as a table, and the error that answers each end.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final

import attrs

from broker.errors import UsageError
from broker.machines import drawn
from broker.registration import BROKER_TRANSITIONS, ZOOKEEPER_TRANSITIONS
from replication.roles.states.lifecycle import LIFECYCLE_TRANSITIONS
from replication.roles.states.partition_status import MOVE_TRANSITIONS, PARTITION_STATUS_TRANSITIONS
from replication.roles.states.replica_role import REPLICA_ROLE_TRANSITIONS
from replication.roles.states.write import WRITE_TRANSITIONS


@attrs.frozen
class Machine:
    """Describe one state machine: its name, its title for readers, and its table."""

    name: str
    title: str
    # The tables have nothing in common but their form.
    table: Mapping[tuple[Any, Any], Any]

    @property
    def states(self) -> tuple[enum.Enum, ...]:
        """Return all states, in the order in which they are declared."""
        return tuple(type(next(iter(self.table.values()))).__members__.values())

    @property
    def inputs(self) -> tuple[enum.Enum, ...]:
        """Return all inputs, in the order in which they are declared."""
        return tuple(type(next(iter(self.table))[1]).__members__.values())

    def text(self, form: str) -> str:
        """Return the machine drawn in one of the forms of `broker.machines`."""
        return drawn(self.table, form)


MACHINES: Final = (
    Machine("registration", "a broker as the controller sees it", BROKER_TRANSITIONS),
    Machine("lifecycle", "a broker process as it sees itself", LIFECYCLE_TRANSITIONS),
    Machine("replica", "a replica as its broker sees it", REPLICA_ROLE_TRANSITIONS),
    Machine("partition", "a partition as the controller sees it", PARTITION_STATUS_TRANSITIONS),
    Machine("reassignment", "a partition that is moved", MOVE_TRANSITIONS),
    Machine("write", "a write at its leader", WRITE_TRANSITIONS),
    Machine("zookeeper-broker", "a broker's ephemeral node in ZooKeeper", ZOOKEEPER_TRANSITIONS),
)
"""Every machine, those of current Kafka first."""


def find_machines(name: str) -> tuple[Machine, ...]:
    """Return the machine of a name, or all of them for "all"; raise UsageError for any other name."""
    found = tuple(machine for machine in MACHINES if name in ("all", machine.name))
    if not found:
        allowed = ", ".join(machine.name for machine in MACHINES)
        raise UsageError(f"there is no state machine {name!r}; there are {allowed}, or all")
    return found
