"""The names of partition directories."""

from __future__ import annotations

import re

import pytest

from broker.entropy import SplitMix64
from broker.ids import PartitionId, TopicPartition
from log.storage.directory_names import (
    NAME_LENGTH_MAX,
    DirectoryRole,
    PartitionDirectory,
    UnexpectedDirectoryError,
    directory_name,
    parse_directory_name,
)

ID = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("name", "topic", "partition", "role"),
    [
        ("orders-0", "orders", 0, DirectoryRole.CURRENT),
        ("a.b-c_d-17", "a.b-c_d", 17, DirectoryRole.CURRENT),
        ("a--1", "a-", 1, DirectoryRole.CURRENT),
        ("a-007", "a", 7, DirectoryRole.CURRENT),
        ("a-+3", "a", 3, DirectoryRole.CURRENT),
        (f"orders-0.{ID}-delete", "orders", 0, DirectoryRole.DELETE),
        (f"orders-0.{ID}-future", "orders", 0, DirectoryRole.FUTURE),
        (f"or.ders-2.{ID}-stray", "or.ders", 2, DirectoryRole.STRAY),
    ],
)
def test_a_name_tells_partition_and_role(name: str, topic: str, partition: int, role: DirectoryRole) -> None:
    expected = PartitionDirectory(name, TopicPartition(topic, PartitionId(partition)), role)
    assert parse_directory_name(name) == expected


@pytest.mark.parametrize(
    "name",
    ["", "orders", "-0", "orders-", "orders-x", "orders-2147483648", "orders-delete", "a-0-delete", "a-b.c-future"],
)
def test_a_name_that_kafka_refuses_is_refused(name: str) -> None:
    with pytest.raises(UnexpectedDirectoryError) as refusal:
        parse_directory_name(name)
    assert str(refusal.value) == (
        f"directory {name!r} is not named topic-partition, nor topic-partition.id-delete and the like"
    )


def test_the_unique_id_is_32_hex_digits_drawn_from_the_source() -> None:
    partition = TopicPartition("t", PartitionId(0))
    entropy = SplitMix64(1)
    first, second = (directory_name(partition, DirectoryRole.DELETE, entropy) for _ in range(2))
    assert re.fullmatch(r"t-0\.[0-9a-f]{32}-delete", first)
    assert first != second
    assert first == directory_name(partition, DirectoryRole.DELETE, SplitMix64(1))


@pytest.mark.parametrize("role", [DirectoryRole.DELETE, DirectoryRole.STRAY])
def test_a_long_topic_is_cut_so_that_the_name_fits(role: DirectoryRole) -> None:
    partition = TopicPartition("t" * 249, PartitionId(3))
    name = directory_name(partition, role, SplitMix64(1))
    assert len(name) == NAME_LENGTH_MAX
    assert parse_directory_name(name).partition.topic == "t" * (NAME_LENGTH_MAX - len(f"-3.{ID}{role.value}"))


def test_a_future_name_is_not_cut() -> None:
    partition = TopicPartition("t" * 249, PartitionId(3))
    assert len(directory_name(partition, DirectoryRole.FUTURE, SplitMix64(1))) == 249 + len(f"-3.{ID}-future")
