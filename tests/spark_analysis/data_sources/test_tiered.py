"""Manifests of tiered segments: what cannot be one is one sentence, and takes no memory for what it claims."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from broker.errors import InputError
from spark_analysis.data_sources.tiered import CHUNK_COUNT_MAX, SegmentManifest

FIXED = {"type": "fixed", "originalChunkSize": 10, "originalFileSize": 25, "transformedChunkSize": 10,
         "finalTransformedChunkSize": 5}  # fmt: skip
GOOD = {"version": "1", "chunkIndex": FIXED, "compression": False, "segmentIndexes": {"transaction": None}}


def read(given: Any) -> SegmentManifest:
    return SegmentManifest.read(given if isinstance(given, bytes) else json.dumps(given).encode(), source="m")


def changed(**fields: Any) -> dict[str, Any]:
    """A good manifest whose chunk index has other fields; None takes a field away."""
    index = {name: value for name, value in (FIXED | fields).items() if value is not None}
    return GOOD | {"chunkIndex": index}


def test_a_good_manifest_has_its_chunks_in_order() -> None:
    found = read(GOOD)
    assert [chunk.size_bytes for chunk in found.chunks] == [10, 10, 5]
    assert (found.size_bytes, found.is_compressed, found.txn_index) == (25, False, None)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (b"", "m: is no JSON, as a manifest of a tiered segment is"),
        (b"\xff\xfe{}", "m: is no JSON, as a manifest of a tiered segment is"),
        (b"[" * 100_000, "m: is no JSON, as a manifest of a tiered segment is"),
        ([], "m: no manifest of a tiered segment: an object of JSON is needed"),
        (None, "m: no manifest of a tiered segment: an object of JSON is needed"),
        ({}, "m: no manifest of a tiered segment: there is no 'version'"),
        ({"version": "1"}, "m: no manifest of a tiered segment: there is no 'chunkIndex'"),
        (GOOD | {"version": "2"}, "m: version '2' of a manifest; '1' is known"),
        (GOOD | {"version": 1}, "m: no manifest of a tiered segment: 'version' is 1, no text"),
        (GOOD | {"encryption": {}}, "m: the segment is encrypted, and its key is not in the manifest alone"),
        (GOOD | {"compression": "no"}, "m: no manifest of a tiered segment: 'compression' is \"no\", no truth value"),
        (GOOD | {"chunkIndex": [1]}, "m: no manifest of a tiered segment: 'chunkIndex' is [1], no object"),
        (GOOD | {"segmentIndexes": {"transaction": {"size": 1}}},
         "m: no manifest of a tiered segment: there is no 'position'"),
        (changed(originalFileSize=float("inf")),
         "m: no manifest of a tiered segment: 'originalFileSize' is Infinity, no whole number"),
        (changed(originalFileSize=-1),
         "m: no manifest of a tiered segment: 'originalFileSize' is -1; allowed are 0 to 2147483647"),
        (changed(originalFileSize=True), "m: no manifest of a tiered segment: 'originalFileSize' is true, no whole "
         "number"),
        (changed(originalChunkSize=0), "m: no manifest of a tiered segment: chunks of 0 bytes of a segment of 25; at "
         "most 1,048,576 are allowed"),
        (changed(transformedChunkSize=None), "m: no manifest of a tiered segment: there is no 'transformedChunkSize'"),
        (changed(type="other"),
         "m: no manifest of a tiered segment: a chunk index of type 'other'; fixed and variable are known"),
        (changed(type="variable", transformedChunks="AAA"),
         "m: no manifest of a tiered segment: 'transformedChunks' are no sizes in Base64"),
        (changed(type="variable", transformedChunks="AAAAAg=="),
         "m: no manifest of a tiered segment: 'transformedChunks' are no sizes in Base64"),
        (changed(type="variable", transformedChunks="AAAAAQAAAAU="),
         "m: no manifest of a tiered segment: 1 chunks of 10 bytes of a segment of 25"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_manifest_is_one_sentence(given: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        read(given)
    assert str(caught.value) == sentence


def test_chunks_that_a_manifest_claims_take_no_memory_before_they_are_counted() -> None:
    """2 GiB in chunks of one byte would be 17 GB of Python objects."""
    given = changed(originalFileSize=2**31 - 1, originalChunkSize=1, transformedChunkSize=1)
    tracemalloc.start()
    with pytest.raises(InputError, match=f"at most {CHUNK_COUNT_MAX:,} are allowed"):
        read(given)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
