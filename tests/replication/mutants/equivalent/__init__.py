"""Mutants that change nothing that could be observed, listed by the room that they are in.

- coordinators: List the equivalent mutants of the group coordinator, each with the reason.
- logs: List the equivalent mutants of a partition's log, each with the reason.
- members: List the equivalent mutants of groups' members and clients, each with the reason.
- roles: List the equivalent mutants of rules and roles, each with the reason.

Source: ours.
"""
