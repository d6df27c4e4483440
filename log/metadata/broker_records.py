"""Apply registration records to a broker's image.

What it decides: what a registration says of a broker, and what a change of one leaves of it: the numbers of a change
have three meanings (yes, no, as before), and directories that it does not name are those of before. So are the cordoned
ones, unless the change names them: an empty list then means that none is cordoned any more.

Constraints: lists that have no order of their own are sorted, so that equal brokers are equal values. A number without
a meaning is refused, as in Kafka.

Example: a change with fenced 1 and no directories fences the broker and leaves its directories.

Source: org.apache.kafka.metadata.{BrokerRegistration,BrokerRegistrationFencingChange,
BrokerRegistrationInControlledShutdownChange} and org.apache.kafka.image.ClusterDelta, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from broker.errors import CorruptDataError
from broker.wire.fields import Fields
from log.metadata.image import BrokerImage, DirectoryId, Endpoint

_FENCED_CHANGE: Final[Mapping[int, bool | None]] = {-1: False, 0: None, 1: True}
_SHUTDOWN_CHANGE: Final[Mapping[int, bool | None]] = {0: None, 1: True}


def registered(data: Fields) -> BrokerImage:
    """Return the broker image that a RegisterBrokerRecord describes."""
    return BrokerImage(
        id=data["brokerId"],
        epoch=data["brokerEpoch"],
        incarnation_id=data["incarnationId"],
        rack=data["rack"],
        fenced=data["fenced"],
        in_controlled_shutdown=data.get("inControlledShutdown", False),
        is_migrating=data.get("isMigratingZkBroker", False),
        endpoints=tuple(
            Endpoint(each["name"], each["host"], each["port"], each["securityProtocol"])
            for each in in_order(data["endPoints"])
        ),
        features=tuple(
            sorted(
                (each["name"], each["minSupportedVersion"], each["maxSupportedVersion"]) for each in data["features"]
            )
        ),
        directories=tuple(sorted(data.get("logDirs", ()))),
        cordoned=_cordoned(data),
    )


def _cordoned(data: Fields) -> tuple[DirectoryId, ...] | None:
    cordoned = data.get("cordonedLogDirs")
    return None if cordoned is None else tuple(sorted(cordoned))


def changed(before: BrokerImage, data: Fields) -> BrokerImage:
    """Return the broker image after a BrokerRegistrationChangeRecord; raise CorruptDataError for unknown values."""
    cordoned = _cordoned(data)
    return attrs.evolve(
        before,
        fenced=_after(before.fenced, _FENCED_CHANGE, data["fenced"], "fenced"),
        in_controlled_shutdown=_after(
            before.in_controlled_shutdown,
            _SHUTDOWN_CHANGE,
            data.get("inControlledShutdown", 0),
            "inControlledShutdown",
        ),
        directories=tuple(sorted(data.get("logDirs", ()))) or before.directories,
        cordoned=before.cordoned if cordoned is None else cordoned,
    )


def in_order(structures: Sequence[Fields]) -> tuple[Fields, ...]:
    """Return a record's structures, such as endpoints or features, sorted by their field `name`."""
    return tuple(sorted(structures, key=lambda each: str(each["name"])))


def _after(before: bool, meanings: Mapping[int, bool | None], number: int, name: str) -> bool:
    if number not in meanings:
        raise CorruptDataError(f"unknown value for {name} field: {number}")
    after = meanings[number]
    return before if after is None else after
