"""Choose the brokers that Kafka's controller gives to its placer.

Fenced brokers are given, for the placer takes them last. Two kinds are not: a broker in controlled shutdown, and since
4.3 one whose log directories are all cordoned (KIP-1066). A broker that has been fenced has left its controlled
shutdown, and is given again. Replica lists by hand are another matter (manual.py).

    >>> from broker.ids import BrokerId
    >>> brokers = [BrokerView(id=BrokerId(number), cordoned=number == 2) for number in (1, 2, 3)]
    >>> [broker.id for broker in usable_brokers(brokers)]
    [1, 3]
    >>> [broker.id for broker in usable_brokers(brokers, Release("4.2"))]
    [1, 2, 3]

Source: org.apache.kafka.controller.BrokerHeartbeatManager.UsableBrokerIterator, 3.9 to 4.3;
org.apache.kafka.metadata.BrokerRegistration.hasUncordonedDirs, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.cluster import BrokerView
from broker.releases import NEWEST, Release

CORDONING_SINCE: Final = Release("4.3")
"""The first release with cordoned log directories."""
CORDONS_REFUSED_SINCE: Final = Release("4.4")
"""The first release whose controller refuses replica lists by hand that name a cordoned broker (KAFKA-20832)."""


def usable_brokers(brokers: Sequence[BrokerView], release: Release = NEWEST) -> Sequence[BrokerView]:
    """Return the brokers that a placer of `release` is given, in their order."""
    cordoning = release >= CORDONING_SINCE
    if not any(broker.in_controlled_shutdown or (cordoning and broker.cordoned) for broker in brokers):
        return brokers
    return [
        broker
        for broker in brokers
        if not (broker.in_controlled_shutdown and not broker.fenced) and not (cordoning and broker.cordoned)
    ]
