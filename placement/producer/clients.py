"""Choose the partition of a key as each client's partitioner does, and say which client's default is which.

    >>> {name: partition_by(name, b"kafka", 4) for name in PARTITIONERS}["consistent_random"]
    3

Source: org.apache.kafka.clients.producer.internals.BuiltInPartitioner, 4.4.0 (KIP-794); rdkafka_msg.c of librdkafka
2.16.0; partitioner.go of sarama 1; kafka.partitioner.default of kafka-python 3.0.12.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from broker.errors import UsageError
from broker.ids import PartitionId
from placement.producer.keys import partition_of_key, usable

FNV_OFFSET: Final = 0x811C9DC5
FNV_PRIME: Final = 0x01000193
_MASK_32: Final = 0xFFFFFFFF


@attrs.frozen
class KeyPartitioner:
    """Describe one partitioner: its function of the key, its rule for records without a key, and its clients."""

    partition: Callable[[bytes, int], int]
    without_key: str
    default_of: str
    """The clients whose default it is, "" for none."""
    source: str
    is_random_for_empty: bool = False


def fnv1a(key: bytes) -> int:
    """Return the FNV-1a hash of a key, an unsigned 32-bit number."""
    state = FNV_OFFSET
    for byte in key:
        state = (state ^ byte) * FNV_PRIME & _MASK_32
    return state


def _by_fnv1a(key: bytes, count: int) -> int:
    """Return the partition by the absolute value of the hash as a signed number, as Go's `%` and a sign change give."""
    state = fnv1a(key)
    return ((1 << 32) - state if state >> 31 else state) % count


def _by_crc32(key: bytes, count: int) -> int:
    return zlib.crc32(key) % count


_RANDOM: Final = "random"
_AS_EMPTY: Final = "as the empty key"
_MURMUR2_CLIENTS: Final = "Java client and franz-go (without key: sticky), KafkaJS since 2.0.0"
_RDKAFKA_CLIENTS: Final = "librdkafka: confluent-kafka of Python, Go and .NET, node-rdkafka, kcat"
_RDKAFKA: Final = "rdkafka_msg.c, librdkafka 2.16.0"

PARTITIONERS: Final[Mapping[str, KeyPartitioner]] = {
    "murmur2": KeyPartitioner(
        partition_of_key,
        _AS_EMPTY,
        _MURMUR2_CLIENTS,
        "KIP-480, KIP-794; BuiltInPartitioner, Kafka 4.4.0; pkg/kgo/config.go of franz-go",
    ),
    "murmur2_random": KeyPartitioner(
        partition_of_key,
        _RANDOM,
        "kafka-python, aiokafka",
        f"{_RDKAFKA}; kafka/partitioner/default.py of kafka-python, aiokafka/partitioner.py",
    ),
    "consistent": KeyPartitioner(_by_crc32, _AS_EMPTY, "", f"CRC-32; {_RDKAFKA}"),
    "consistent_random": KeyPartitioner(
        _by_crc32, _RANDOM, _RDKAFKA_CLIENTS, f"CRC-32; {_RDKAFKA}", is_random_for_empty=True
    ),
    "fnv1a": KeyPartitioner(_by_fnv1a, _AS_EMPTY, "", _RDKAFKA),
    "fnv1a_random": KeyPartitioner(_by_fnv1a, _RANDOM, "sarama", "NewHashPartitioner, partitioner.go of sarama 1"),
}
"""Every partitioner by librdkafka's name for it."""


def partitioner(name: str) -> KeyPartitioner:
    """Return the partitioner called `name`; raise UsageError for a name that is none."""
    if name not in PARTITIONERS:
        raise UsageError(f"the partitioner is {name!r}; allowed are {', '.join(PARTITIONERS)}")
    return PARTITIONERS[name]


def partition_by(name: str, key: bytes, partition_count: int) -> PartitionId | None:
    """Return the partition of a key by the partitioner called `name`; None where it draws one at random.

    Raises UsageError for an unknown name, and as `partition_of_key` does.
    """
    chosen = partitioner(name)
    count = usable(partition_count)
    return None if not key and chosen.is_random_for_empty else PartitionId(chosen.partition(key, count))
