"""Which partition of __consumer_offsets keeps a group; the golden vectors hold the hash itself."""

from __future__ import annotations

import pytest

from broker.errors import UsageError
from broker.group.routing import offsets_partition, positive_hash
from broker.java.string_hash import java_string_hash


def test_the_least_int_has_no_absolute_value_and_counts_as_zero() -> None:
    text = "polygenelubricants"  # The well-known English word of this hash.
    assert java_string_hash(text) == -(2**31)
    assert positive_hash(text) == offsets_partition(text, 50) == 0


def test_a_negative_hash_goes_by_its_absolute_value_not_by_its_remainder() -> None:
    assert java_string_hash("my-group") == -1_906_497_762
    assert offsets_partition("my-group", 50) == 12
    assert -1_906_497_762 % 50 == 38


@pytest.mark.parametrize("partition_count", [0, -1, 2**31])
def test_a_topic_without_partitions_is_refused(partition_count: int) -> None:
    message = f"offsets.topic.num.partitions is {partition_count}; allowed are 1 to 2147483647"
    with pytest.raises(UsageError, match=message):
        offsets_partition("group", partition_count)
