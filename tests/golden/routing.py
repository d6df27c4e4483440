"""Golden cases of routing: the partition of a key, and the partition that keeps a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from broker.group.routing import offsets_partition, positive_hash
from broker.java.string_hash import java_string_hash
from placement.producer.keys import POSITIVE_MASK, murmur2, partition_of_key

Json: TypeAlias = Any


def run_key_partition(given: Mapping[str, Json]) -> Json:
    """Answer a key's hash, the hash without its sign, and the partition that the producer picks."""
    key = bytes.fromhex(given["key_hex"])
    hashed = murmur2(key)
    partition = partition_of_key(key, given["partitions"])
    return {"murmur2": hashed, "positive": hashed & POSITIVE_MASK, "partition": partition}


def run_group_partition(given: Mapping[str, Json]) -> Json:
    """Answer a group id's Java hash, its absolute value, and the group's partition of __consumer_offsets."""
    group_id = given["group_id"]
    partition = offsets_partition(group_id, given["partitions"])
    return {"hash_code": java_string_hash(group_id), "abs": positive_hash(group_id), "partition": partition}
