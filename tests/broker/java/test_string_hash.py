"""The order of hash maps, as printed by Java 17."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.java.hash_order import string_hashes, string_places, uuid_key, uuid_places
from broker.java.hash_table import HashTable
from broker.java.string_hash import java_map_order, java_set_copy_order, java_string_hash
from broker.java.tree_bin import TreeBin

DOUBLED_LETTERS = "hh bb dd ff jj ll nn pp rr tt vv xx zz gg aa cc ee ii kk mm oo qq ss uu ww yy"
DOUBLED_LETTERS_REVERSED = "tt zz xx vv rr pp nn ll jj hh ff dd bb ss yy ww uu qq oo mm kk ii gg ee cc aa"
COPIED = [32, 48, 0, 64, 16, 80]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("a", 97),
        ("Aa", 2112),
        ("BB", 2112),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 0xD83D * 31 + 0xDE00),
        ("\ud83d", 0xD83D),
    ],
)
def test_string_hashes_are_java_s_over_utf_16_units(text: str, code: int) -> None:
    assert java_string_hash(text) == code


@pytest.mark.parametrize(
    ("count", "step", "places"),
    [
        # All in one bin of 16: the ninth key doubles the table, as would a thirteenth.
        (9, 16, [0, 32, 64, 96, 128, 16, 48, 80, 112]),
        (12, 16, [0, 32, 64, 96, 128, 160, 16, 48, 80, 112, 144, 176]),
        # All in one bin of 32 too: the tenth key doubles it again, to 64.
        (12, 32, [32, 96, 160, 224, 288, 352, 0, 64, 128, 192, 256, 320]),
    ],
)
def test_a_ninth_key_in_one_bin_doubles_a_small_table(count: int, step: int, places: list[int]) -> None:
    keys = [chr(97 + step * index) for index in range(count)]
    assert [ord(key or "") - 97 for key in java_map_order(keys)] == places


def test_a_crowded_bin_of_a_large_table_is_walked_as_a_tree() -> None:
    # The hash of a doubled letter is a multiple of 32, so thirteen of these share a bin of 64.
    doubled = [letter * 2 for letter in "abcdefghijklmnopqrstuvwxyz"]
    assert " ".join(key or "" for key in java_map_order(doubled)) == DOUBLED_LETTERS
    assert " ".join(key or "" for key in java_map_order(doubled[::-1])) == DOUBLED_LETTERS_REVERSED


def test_a_copied_set_starts_with_the_table_that_fits_the_collection() -> None:
    keys = [chr(97 + 16 * index) for index in range(6)]
    assert java_map_order(keys) == tuple(keys)
    padded = [*keys, *["a"] * 20]  # 26 elements ask for 35 bins: 64.
    assert [ord(key or "") - 97 for key in java_set_copy_order(padded)] == COPIED
    assert java_set_copy_order(keys) == tuple(keys)


@given(st.permutations([(number, True, b"") for number in range(40)]))
def test_a_tree_bin_is_a_search_tree_whose_paths_are_balanced(keys: list[tuple[int, bool, bytes]]) -> None:
    tree = TreeBin.of(keys[:9])
    for key in keys[9:]:
        tree.add(key)
    assert tree.root is not None
    assert tree.order[0] == tree.root.key
    assert sorted(tree.order) == sorted(keys)
    level, depth = [tree.root], 0
    while level:
        assert all(not (node.red and node.parent is not None and node.parent.red) for node in level)
        level = [child for node in level for child in node.children if child is not None]
        depth += 1
    assert depth <= 10  # A red-black tree of 40 keys is at most 2 log2(41) deep.


TWELVE = tuple("aqbrcsdteufv")
"""Twelve keys that fill three quarters of 16 bins: a and q, b and r, … share one, but not in 32."""


def test_the_upper_half_of_a_hash_moves_a_key() -> None:
    assert java_map_order(["abc", "b", "abd", "c"]) == ("b", "abd", "abc", "c")


def test_a_table_three_quarters_full_does_not_grow() -> None:
    assert java_map_order(TWELVE) == TWELVE


def test_a_copy_of_twelve_keys_begins_with_a_table_of_32() -> None:
    assert java_set_copy_order(TWELVE) == tuple("abcdefqrstuv")


def test_a_key_added_to_a_tree_is_met_right_after_its_parent() -> None:
    keys = (
        "AaAaBBBB BBAaBBAa AaAaAaBB BBAaAaAa BBBBBBBB AaBBBBAa BBBBAaBB AaBBAaAa "
        "BBAaBBBB AaAaBBAa BBAaAaBB AaAaAaAa AaBBBBBB BBBBBBAa AaBBAaBB BBBBAaAa"
    )
    walked = (
        "AaBBBBAa AaAaBBBB BBAaBBAa AaAaAaBB AaAaAaAa BBAaAaAa AaBBBBBB BBBBBBBB "
        "BBBBBBAa BBBBAaBB AaBBAaAa AaBBAaBB BBAaBBBB BBBBAaAa AaAaBBAa BBAaAaBB"
    )
    assert java_map_order(keys.split()) == tuple(walked.split())


def test_a_tree_split_into_six_keys_and_six_leaves_two_lists() -> None:
    ones = ["BBAaBB", "BBAaAa", "AaBBBB", "AaBBAa", "AaAaBB", "AaAaAa"]
    others = ["acaAaAaAa", "acaAaAaBB", "acaAaBBAa", "acaAaBBBB", "acaBBAaAa", "acaBBAaBB"]
    fillers = [f"k{number}" for number in range(40)]
    mixed = [key for pair in zip(ones, others, strict=True) for key in pair]
    order = java_map_order([*fillers[:30], *mixed, *fillers[30:]])
    assert [key for key in order if key in ones] == ["AaBBAa", "BBAaBB", "BBAaAa", "AaBBBB", "AaAaBB", "AaAaAa"]
    assert [key for key in order if key in others] == others


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
