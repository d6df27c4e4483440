"""The order of Java's hash tables where their size, their trees and their splitting show; as printed by Java 17."""

from __future__ import annotations

from broker.java.string_hash import java_map_order, java_set_copy_order

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
