"""The order of Java's hash maps; the expected orders were printed by OpenJDK 17."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.java.string_hash import java_map_order, java_set_copy_order, java_string_hash
from broker.java.tree_bin import TreeBin

DOUBLED_LETTERS = "hh bb dd ff jj ll nn pp rr tt vv xx zz gg aa cc ee ii kk mm oo qq ss uu ww yy"
DOUBLED_LETTERS_REVERSED = "tt zz xx vv rr pp nn ll jj hh ff dd bb ss yy ww uu qq oo mm kk ii gg ee cc aa"
COPIED = [32, 48, 0, 64, 16, 80]
COLLIDING = [
    *("AaAaBBBB", "AaAaAaAa", "AaAaAaBB", "AaAaBBAa", "AaBBAaAa", "AaBBAaBB", "AaBBBBAa", "AaBBBBBB"),
    *("BBAaAaAa", "BBAaAaBB", "BBAaBBAa", "BBAaBBBB", "BBBBAaAa", "BBBBAaBB", "BBBBBBAa", "BBBBBBBB"),
]


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


def test_names_of_equal_hash_are_walked_by_name_once_they_are_many() -> None:
    names = ["".join(parts) for parts in product(("Aa", "BB"), repeat=4)]
    assert len({java_string_hash(name) for name in names}) == 1
    order = java_set_copy_order([*names, *(str(number) for number in range(40))])
    assert [name for name in order if name in names] == COLLIDING
