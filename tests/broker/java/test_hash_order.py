"""The order of many keys at once is that of a map filled one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.java.hash_order import string_hashes, string_places, uuid_key, uuid_places
from broker.java.hash_table import HashTable
from broker.java.string_hash import java_map_order, java_string_hash

NAMES = st.lists(st.text(max_size=6), unique=True, max_size=120)


@given(NAMES)
def test_strings_are_walked_as_in_a_map_filled_one_by_one(names: list[str]) -> None:
    assert [names[place] for place in string_places(names)] == list(java_map_order(names))
    assert string_hashes(names).tolist() == [java_string_hash(name) % 2**32 for name in names]


@pytest.mark.parametrize("count", [9, 30, 60, 200])
def test_strings_that_crowd_one_bin_are_walked_as_trees(count: int) -> None:
    crowd = [name for name in map("bin-{}".format, range(30_000)) if _bin_of_64(name) == 5][:count]
    names = [f"filler-{number}" for number in range(25)] + crowd
    assert [names[place] for place in string_places(names)] == list(java_map_order(names))


@pytest.mark.parametrize("first", range(6))
def test_a_bin_becomes_a_tree_though_the_same_key_makes_the_table_grow(first: int) -> None:
    # The 49th key is the ninth of its bin: the tree is made, then split as the table of 64 doubles.
    crowd = [name for name in map("bin-{}".format, range(30_000)) if _bin_of_64(name) == 5][first : first + 9]
    fillers = [name for name in map("filler-{}".format, range(60)) if _bin_of_64(name) != 5][:40]
    names = fillers + crowd
    assert [names[place] for place in string_places(names)] == list(java_map_order(names))


def _bin_of_64(name: str) -> int:
    code = java_string_hash(name) % 2**32
    return (code ^ code >> 16) % 64


@given(st.lists(st.binary(min_size=16, max_size=16), unique=True, max_size=60), st.booleans())
def test_ids_are_walked_by_the_hash_of_their_halves(ids: list[bytes], copied: bool) -> None:
    size = 16
    while copied and size < len(ids) * 4 // 3 + 1:
        size *= 2
    table = HashTable(size)
    for one in ids:
        mixed = int.from_bytes(one[:8], "big") ^ int.from_bytes(one[8:], "big")
        code = (mixed >> 32) ^ (mixed & 0xFFFF_FFFF)
        spread = code ^ code >> 16
        table.add((spread - 2**32 if spread >> 31 else spread, True, uuid_key(one)))
    assert [uuid_key(ids[place]) for place in uuid_places(ids, copied=copied)] == [key for _, _, key in table]


def test_a_table_that_loses_its_first_key_shows_the_next() -> None:
    table = HashTable()
    for code in (33, 2, 17):
        table.add((code, True, b""))
    assert table.first()[0] == 33
    table.remove((33, True, b""))
    assert (table.first()[0], len(table)) == (17, 2)
    table.remove((17, True, b""))
    assert [key[0] for key in table] == [2]
