"""Derive the 16 bytes that stand for a topic where order or hashing by id reaches a server-side assignor's result.

    >>> topic_id("orders", "PTbYb4j67mdVntpRPBbzHg").hex()
    '3d36d86f88faee67559eda513c16f31e'
    >>> id_text(topic_id("orders", None))
    'HBaK2wDSCOQvkzFFKfH6nA'

Source: org.apache.kafka.common.Uuid, 4.3.1; ids that are not given are the beginning of SHA-256 of the name.
"""

from __future__ import annotations

import binascii
import functools
import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from broker.errors import UsageError
from placement.consumer.group import Group

ID_SIZE_BYTES: Final = 16
DECODED_COUNT_MAX: Final = 65_536  # Some 10 MB: a group's topics are asked about again with every rebalance.


def topic_id(name: str, given: str | None) -> bytes:
    """Return a topic's id; raise UsageError if the given id is no Kafka Uuid."""
    if given is not None:
        found = _decoded(given)
        if found is None:
            raise UsageError(f"topic {name!r} has the id {given!r}; an id is 22 characters of URL-safe base64")
        return found
    return _decoded(name) or hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:ID_SIZE_BYTES]


def topic_ids(group: Group) -> list[bytes]:
    """Return the id of each topic of the group, in order of index; raise UsageError as `topic_id`."""
    return [topic_id(name, given) for name, given in zip(group.topics, group.topic_ids, strict=True)]


def id_text(uuid: bytes) -> str:
    """Return an id as Kafka prints it."""
    return urlsafe_b64encode(uuid).rstrip(b"=").decode("ascii")


@functools.lru_cache(maxsize=DECODED_COUNT_MAX)
def _decoded(text: str) -> bytes | None:
    if len(text) != 22:
        return None
    try:
        found = urlsafe_b64decode(text.encode("ascii") + b"==")
    except (UnicodeEncodeError, binascii.Error):
        return None
    return found if len(found) == ID_SIZE_BYTES and id_text(found) == text else None
