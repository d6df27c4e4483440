"""Model the group coordinator inside a broker.

- service: Serve one group under either protocol, with its offsets: requests go in, responses and records come out.
- routing: Choose the broker that coordinates a group: the leader of one partition of `__consumer_offsets`.
- classic/: Coordinate classic groups, whose leader, a member, computes the assignment.
- consumer/: Coordinate consumer groups (KIP-848), in which the coordinator computes the assignment.
- herd: Simulate a group of consumers before 0.9, without a coordinator.
- cli: Run `brokerside groups herd`.
- offsets: Keep the committed offsets of all groups on one coordinator.
- messages: Define the requests for coordinators and offsets, which both group protocols share.
- members: Describe the members of a group, and describe a classic group as its record stores it.
- records: Read and write the records of `__consumer_offsets`: committed offsets and classic groups.
- protocol: Read and write the subscriptions and assignments that consumers exchange, in Kafka's binary form.
- assignors: Define the interface of the assignors that the caller passes to a consumer group's coordinator.
- timers: Keep named timers, each with an action that runs unless the timer is cancelled.
- schemas: Define the records of `__consumer_offsets`, and the messages between members of classic groups.
"""

from __future__ import annotations

from broker.group.routing import offsets_partition, positive_hash

__all__ = ("offsets_partition", "positive_hash")
