"""Drawings say what the numbers say."""

from __future__ import annotations

import re
import struct
import zlib
from typing import Any

import attrs
import numpy as np
import pytest

from placement.balance import measures as balance
from spark_analysis.report.broker_chart import Bands, broker_chart
from spark_analysis.report.distribution_chart import BINS, Group, distribution
from spark_analysis.report.heat_map import heat_map, indexed_png, pairs_in_words, shared_matrix
from spark_analysis.report.model import PairCounts
from spark_analysis.report.rows import BrokerLoad, RackLoad, Spread


def brokers_of(loads: list[int], racks: int = 2) -> list[BrokerLoad]:
    made = [
        BrokerLoad(0, "dump", place, f"r{place % racks}", False, load, load, None) for place, load in enumerate(loads)
    ]
    return sorted(made, key=lambda broker: (broker.rack or "", broker.broker_id))


def spread_of(loads: list[int]) -> Spread:
    found = attrs.asdict(balance.distribution(np.array(loads, np.int64)))
    return Spread(cluster_id=0, placer="dump", scope="broker", quantity="replicas", **found)


def pairs_of(counts: dict[tuple[int, int], int]) -> PairCounts:
    ones, others = zip(*counts, strict=True)
    return PairCounts(np.array(ones, np.int32), np.array(others, np.int32), np.array(list(counts.values()), np.int64))


def test_a_distribution_marks_the_optimum_and_names_its_axes() -> None:
    drawn = distribution(
        "d", "leaders", [Group("classic", "even", (0, 0, 40_000)), Group("striped", "even", (0, 0, 0))]
    )
    assert "best possible" in drawn.text
    assert "leaders to move, % of all leaders of the cluster" in drawn.text
    assert "classic even: 2 of 3 at the optimum, median 0 %, worst 4.0 %" in drawn.text
    assert 'role="img"' in drawn.text


def test_every_cluster_is_in_some_bar() -> None:
    values = tuple(sorted(int(value) for value in np.linspace(0, 100_000, 200)))
    drawn = distribution("d", "leaders", [Group("g", "", values)])
    bars = re.findall(r'd="([^"]*z)" class="bar"', drawn.text)
    assert len(bars) == 1
    assert bars[0].count("M") == BINS


def test_what_stands_above_the_ceiling_is_drawn_apart() -> None:
    loads = [4, 2, 2, 2]  # The mean is 2.5: floor 2, ceiling 3.
    assert Bands.of(spread_of(loads)).at("r0") == (2, 3)
    drawn = broker_chart("c", brokers_of(loads), [spread_of(loads)])
    assert drawn is not None
    paths = dict(re.findall(r'd="(M[^"]*)" stroke-width="[^"]*" class="(load|excess)"', drawn.text))
    assert sorted(paths.values()) == ["excess", "load"]
    excess = next(path for path, kind in paths.items() if kind == "excess")
    assert excess.count("M") == 1
    assert 'class="band"' in drawn.text


def test_each_rack_has_the_band_that_its_brokers_can_reach() -> None:
    """The lone broker of r1 must hold 6; above the band and by more than the tolerance is only broker 0."""
    brokers = [BrokerLoad(0, "dump", place, rack, False, load, None, None) for place, rack, load in (
        (0, "r0", 4), (2, "r0", 2), (1, "r1", 6))]  # fmt: skip
    racks = [RackLoad(0, "dump", "r0", 2, 6, None, None, 3, 3), RackLoad(0, "dump", "r1", 1, 6, None, None, 6, 6)]
    drawn = broker_chart("c", brokers, [spread_of([4, 6, 2])], racks)
    assert drawn is not None
    assert drawn.text.count('class="band"') == 2
    excess = re.findall(r'd="(M[^"]*)" stroke-width="[^"]*" class="excess"', drawn.text)
    assert [path.count("M") for path in excess] == [1]
    assert "best possible 3 to 6" in drawn.text


def test_the_accent_follows_the_tolerance_that_is_given() -> None:
    loads = [12, 10, 8]
    marked = broker_chart("c", brokers_of(loads), [spread_of(loads)], tolerance=0.1)
    calm = broker_chart("c", brokers_of(loads), [spread_of(loads)], tolerance=0.5)
    assert marked is not None
    assert calm is not None
    assert 'class="excess"' in marked.text
    assert 'class="excess"' not in calm.text


@pytest.mark.parametrize("count", [3, 60, 300])
def test_every_bar_names_its_broker_and_its_loads(count: int) -> None:
    loads = [7] * count
    drawn = broker_chart("c", brokers_of(loads), [spread_of(loads)])
    assert drawn is not None
    named = re.findall(r"<title>broker (\d+) \(r\d\): 7 replicas</title>", drawn.text)
    assert len(set(named)) == len(named) == count


def test_a_small_heat_map_is_a_table_with_the_numbers_in_it() -> None:
    brokers = brokers_of([1, 1, 1])
    drawn = heat_map("c", brokers, pairs_of({(0, 1): 2, (1, 2): 6}))
    assert drawn is not None
    assert "<table" in drawn.text
    assert '<td class="h6">6</td>' in drawn.text
    assert '<td class="h0">0</td>' in drawn.text


def test_a_large_heat_map_is_a_picture_of_the_same_matrix() -> None:
    brokers = brokers_of([1] * 20, racks=3)
    pairs = pairs_of({(0, 3): 6, (1, 19): 3})
    drawn = heat_map("c", brokers, pairs)
    assert drawn is not None
    assert 'href="data:image/png;base64,' in drawn.text
    matrix = shared_matrix(brokers, pairs)
    assert (matrix == matrix.T).all()
    assert matrix.sum() == 18
    order = [broker.broker_id for broker in brokers]
    assert matrix[order.index(0), order.index(3)] == 6


@pytest.mark.parametrize("size", [1, 2, 15, 120])
def test_the_picture_decodes_to_the_levels_it_was_made_of(size: int) -> None:
    levels = (np.arange(size * size).reshape(size, size) % 7).astype(np.uint8)
    assert (decoded(indexed_png(levels)) == levels).all()


def decoded(png: bytes) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Read a PNG of four bits a pixel and no filter, as the specification says, checking its checksums."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        name, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", png, at + 8 + length) == (zlib.crc32(name + data),)
        chunks[name] = data
        at += 12 + length
    width, height, depth, colour = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    assert (depth, colour) == (4, 3)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert (lines[:, 0] == 0).all()
    pixels = np.stack([lines[:, 1:] >> 4, lines[:, 1:] & 15], axis=2).reshape(height, -1)
    return pixels[:, :width]


def test_the_legend_names_the_whole_numbers_of_each_level_once() -> None:
    brokers = brokers_of([1] * 20)
    drawn = heat_map("c", brokers, pairs_of({(0, 3): 8, (1, 19): 3}))
    assert drawn is not None
    labels = re.findall(r'y="[0-9.]+">([^<]*)</text>', drawn.text)
    assert labels[-7:] == ["7 to 8", "6", "5", "3 to 4", "2", "1", "none"]
    few = heat_map("c", brokers, pairs_of({(0, 3): 2, (1, 19): 1}))
    assert few is not None
    assert re.findall(r'y="[0-9.]+">([^<]*)</text>', few.text)[-3:] == ["2", "1", "none"]


def test_the_pairs_are_said_in_words() -> None:
    brokers = brokers_of([1, 1, 1])
    said = pairs_in_words(brokers, shared_matrix(brokers, pairs_of({(0, 1): 2, (1, 2): 6})))
    assert said == (
        "Brokers 1 and 2 share most: 6 partitions, where the mean over all 3 pairs is 2.7; "
        "1 pair without any in common."
    )
