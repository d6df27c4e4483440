"""Each client's partitioner, against what librdkafka chose itself."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import UsageError
from placement.producer.cli import partition_command
from placement.producer.clients import PARTITIONERS, fnv1a, partition_by

KEYS = (b"", b"a", b"kafka", b"order-1", bytes(range(256)), b"21", b"foobar")
CHOSEN = {
    "consistent": (0, 3, 3, 3, 3, 0, 1),
    "consistent_random": (None, 3, 3, 3, 3, 0, 1),
    "murmur2": (1, 0, 0, 2, 2, 0, 2),
    "murmur2_random": (1, 0, 0, 2, 2, 0, 2),
    "fnv1a": (3, 0, 1, 1, 3, 0, 0),
    "fnv1a_random": (3, 0, 1, 1, 3, 0, 0),
}
"""Where librdkafka 2.16.0 sent these keys, on a topic of four partitions of its mock cluster."""


@pytest.mark.parametrize("name", sorted(PARTITIONERS))
def test_keys_go_where_librdkafka_sends_them(name: str) -> None:
    assert tuple(partition_by(name, key, 4) for key in KEYS) == CHOSEN[name]


def test_fnv1a_is_that_of_its_authors() -> None:
    """Test vectors of Fowler, Noll and Vo."""
    assert {key: fnv1a(key) for key in (b"", b"a", b"foobar")} == {
        b"": 0x811C9DC5,
        b"a": 0xE40C292C,
        b"foobar": 0xBF9CF968,
    }


@given(st.binary(max_size=20), st.integers(1, 1000))
def test_fnv1a_is_the_absolute_rest_of_the_signed_hash_as_sarama_computes_it(key: bytes, count: int) -> None:
    signed = fnv1a(key) - (1 << 32) if fnv1a(key) >> 31 else fnv1a(key)
    assert partition_by("fnv1a", key, count) == abs(signed) % count


def test_an_unknown_partitioner_and_no_partitions_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^the partitioner is 'md5'; allowed are murmur2, murmur2_random, consistent"):
        partition_by("md5", b"", 1)
    with pytest.raises(UsageError, match=r"^the number of partitions is -1; allowed are 1 to"):
        partition_by("murmur2", b"", -1)


def test_the_command_prints_every_partitioner_and_whose_default_it_is() -> None:
    found = CliRunner().invoke(partition_command, ["kafka", "", "--partitions", "4", "--json"], catch_exceptions=False)
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert [(row["key"], row["partition"]) for row in rows] == [
        (key, CHOSEN[name][place]) for key, place in (("kafka", 2), ("", 0)) for name in PARTITIONERS
    ]
    text = CliRunner().invoke(partition_command, ["6b61666b61", "--hex", "--partitions", "4"]).stdout.splitlines()
    assert text[3].startswith("consistent_random  6b61666b61: 3  (default of librdkafka")
    table = CliRunner().invoke(partition_command, []).stdout
    assert [name for name in PARTITIONERS if f"{name} " not in table] == []
    assert "KIP-794" in table
