"""Names of 20 digits, and what is not one."""

from __future__ import annotations

import pytest

from broker.ids import Offset
from log.segments.file_names import LOG, OFFSET_INDEX, SWAP, base_offset_of, file_name, kind_of


def test_a_name_has_20_digits_and_says_what_the_file_is() -> None:
    assert file_name(Offset(42), LOG) == "00000000000000000042.log"
    assert file_name(Offset(2**63 - 1), OFFSET_INDEX, SWAP) == "09223372036854775807.index.swap"


@pytest.mark.parametrize(
    "name", ["leader-epoch-checkpoint", "", ".log", "1x.log", "-1.log", "٤٢.log", "1" * 21 + ".log"]
)
def test_what_does_not_begin_with_digits_has_no_offset(name: str) -> None:
    assert base_offset_of(name) is None


def test_the_offset_and_the_kind_are_read_back() -> None:
    name = file_name(Offset(7), OFFSET_INDEX, SWAP)
    assert (base_offset_of(name), kind_of(name)) == (7, ".index.swap")
