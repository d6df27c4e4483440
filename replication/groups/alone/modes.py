"""The three protocols by which a group can live, and which assignors each takes.

Decides what `--protocol` and `--assignor` mean.

Constraints: eager groups take any of the client's assignors, cooperative ones the cooperative one, and the coordinator
of a consumer group its own two. Without a name it is the one that Kafka would take; for eager `range`.

Source: ConsumerConfig partition.assignment.strategy, group.protocol, group.remote.assignor, and the broker's
group.consumer.assignors, 4.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.entropy import SplitMix64
from broker.errors import UsageError
from broker.group.classic import ClassicOptions
from broker.group.consumer import ConsumerOptions, GroupContext
from broker.group.offsets import OffsetOptions
from broker.group.service import ServiceOptions
from placement.consumer.registry import KAFKAS, load_assignor
from replication.groups.alone.scenario import GroupRunScenario, Mode
from replication.groups.client.assigning import COOPERATIVE, SERVER_NAMES, OnServer

DEFAULTS: Final[Mapping[Mode, str]] = {
    Mode.EAGER: "range",
    Mode.COOPERATIVE: "cooperative-sticky",
    Mode.CONSUMER: "uniform",
}


def takes(mode: Mode, assignor: str) -> bool:
    """Return whether a group of this protocol can be assigned so."""
    match mode:
        case Mode.CONSUMER:
            return assignor in SERVER_NAMES or assignor not in KAFKAS
        case Mode.COOPERATIVE:
            return assignor in COOPERATIVE
        case Mode.EAGER:
            return assignor not in COOPERATIVE and assignor not in SERVER_NAMES


def assignor_of(scenario: GroupRunScenario, mode: Mode) -> str:
    """Return the assignor's name; raises UsageError where the protocol does not take the one asked for."""
    if scenario.assignor is None:
        return DEFAULTS[mode]
    load_assignor(scenario.assignor)
    if not takes(mode, scenario.assignor):
        raise UsageError(f"a group of the {mode.value} protocol cannot be assigned by {scenario.assignor!r}")
    return scenario.assignor


def client_assignors(scenario: GroupRunScenario, mode: Mode) -> tuple[str, ...]:
    """Return what members name: their assignor, or the server's, by the name that each side has for it."""
    name = assignor_of(scenario, mode)
    return (SERVER_NAMES.get(name, name),) if mode is Mode.CONSUMER else (name,)


def service_options(scenario: GroupRunScenario, mode: Mode, topics: Mapping[str, int], seed: int) -> ServiceOptions:
    """Return the coordinator's settings and surroundings; `topics` is looked at whenever it needs them."""
    name = assignor_of(scenario, mode) if mode is Mode.CONSUMER else DEFAULTS[Mode.CONSUMER]
    assignors = (OnServer.load(name, SplitMix64(seed)),)
    retention_ms = scenario.offsets_retention_ms
    return ServiceOptions(
        classic=ClassicOptions(),
        context=GroupContext(options=ConsumerOptions(), assignors=assignors, topics=topics),
        offsets=OffsetOptions() if retention_ms is None else OffsetOptions(retention_ms=retention_ms),
    )
