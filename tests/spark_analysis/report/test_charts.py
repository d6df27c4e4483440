"""Drawings say what the numbers say."""

from __future__ import annotations

import base64
import re
import struct
import zlib

import attrs
import numpy as np
import pytest

from placement.balance import measures as balance
from spark_analysis.report.broker_chart import Bands, broker_chart
from spark_analysis.report.distribution_chart import BINS, Group, distribution
from spark_analysis.report.model import PairCounts
from spark_analysis.report.rows import BrokerLoad, RackLoad, Spread
from spark_analysis.report.shared import shared_of


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
    assert "best possible" in drawn
    assert "leaders to move, % of all leaders of the cluster" in drawn
    assert "classic even: 2 of 3 at the optimum, median 0 %, worst 4.0 %" in drawn
    assert 'role="img"' in drawn


def test_every_cluster_is_in_some_bar() -> None:
    values = tuple(sorted(int(value) for value in np.linspace(0, 100_000, 200)))
    drawn = distribution("d", "leaders", [Group("g", "", values)])
    bars = re.findall(r'd="([^"]*z)" class="bar"', drawn)
    assert len(bars) == 1
    assert bars[0].count("M") == BINS


def test_what_stands_above_the_ceiling_is_drawn_apart() -> None:
    loads = [4, 2, 2, 2]  # The mean is 2.5: floor 2, ceiling 3.
    assert Bands.of(spread_of(loads)).at("r0") == (2, 3)
    drawn = broker_chart("c", brokers_of(loads), [spread_of(loads)])
    assert drawn is not None
    paths = dict(re.findall(r'd="(M[^"]*)" stroke-width="[^"]*" class="(load|excess)"', drawn))
    assert sorted(paths.values()) == ["excess", "load"]
    excess = next(path for path, kind in paths.items() if kind == "excess")
    assert excess.count("M") == 1
    assert 'class="band"' in drawn


def test_each_rack_has_the_band_that_its_brokers_can_reach() -> None:
    """The lone broker of r1 must hold 6; above the band and by more than the tolerance is only broker 0."""
    brokers = [BrokerLoad(0, "dump", place, rack, False, load, None, None) for place, rack, load in (
        (0, "r0", 4), (2, "r0", 2), (1, "r1", 6))]  # fmt: skip
    racks = [RackLoad(0, "dump", "r0", 2, 6, None, None, 3, 3), RackLoad(0, "dump", "r1", 1, 6, None, None, 6, 6)]
    drawn = broker_chart("c", brokers, [spread_of([4, 6, 2])], racks)
    assert drawn is not None
    assert drawn.count('class="band"') == 2
    excess = re.findall(r'd="(M[^"]*)" stroke-width="[^"]*" class="excess"', drawn)
    assert [path.count("M") for path in excess] == [1]
    assert "best possible 3 to 6" in drawn


def test_the_accent_follows_the_tolerance_that_is_given() -> None:
    loads = [12, 10, 8]
    marked = broker_chart("c", brokers_of(loads), [spread_of(loads)], tolerance=0.1)
    calm = broker_chart("c", brokers_of(loads), [spread_of(loads)], tolerance=0.5)
    assert marked is not None
    assert calm is not None
    assert 'class="excess"' in marked
    assert 'class="excess"' not in calm


@pytest.mark.parametrize("count", [3, 60, 300])
def test_every_bar_names_its_broker_and_its_loads(count: int) -> None:
    loads = [7] * count
    drawn = broker_chart("c", brokers_of(loads), [spread_of(loads)])
    assert drawn is not None
    named = re.findall(r"<title>broker (\d+) \(r\d\): 7 replicas</title>", drawn)
    assert len(set(named)) == len(named) == count


def test_shared_partitions_are_numbers_with_levels_and_a_sentence() -> None:
    found = shared_of(brokers_of([1, 1, 1]), pairs_of({(0, 1): 2, (1, 2): 6}))
    assert found is not None  # Brokers 0, 2 and 1, in rack order.
    assert found.counts == [[0, 0, 2], [0, 0, 6], [2, 6, 0]]
    assert found.levels == [[0, 0, 2], [0, 0, 6], [2, 6, 0]]
    assert found.words == (
        "Brokers 1 and 2 share most: 6 partitions, where the mean over all 3 pairs is 2.7; "
        "1 pair without any in common."
    )


def test_many_brokers_have_the_sentence_alone_and_one_broker_nothing() -> None:
    found = shared_of(brokers_of([1] * 20), pairs_of({(0, 3): 6, (1, 19): 3}))
    assert found is not None
    assert (found.counts, found.words.startswith("Brokers 0 and 3 share most: 6 partitions")) == ([], True)
    assert shared_of(brokers_of([1]), pairs_of({(0, 3): 6})) is None


def pixels_of(image: str) -> list[list[int]]:
    """Return the levels in a stored, palette PNG of a data URI, row by row."""
    data = base64.b64decode(image.removeprefix("data:image/png;base64,"))
    chunks, at = {}, 8
    while at < len(data):
        (size,), name = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        chunks[name], check = data[at + 8 : at + 8 + size], data[at + 8 + size : at + 12 + size]
        assert zlib.crc32(name + chunks[name]) == int.from_bytes(check, "big")
        at += 12 + size
    side = int.from_bytes(chunks[b"IHDR"][:4], "big")
    rows = zlib.decompress(chunks[b"IDAT"])
    assert (data[:8], len(rows)) == (b"\x89PNG\r\n\x1a\n", side * (side + 1))
    return [list(rows[row * (side + 1) + 1 : (row + 1) * (side + 1)]) for row in range(side)]


def test_many_brokers_are_an_image_of_one_dot_a_pair_in_rack_order() -> None:
    brokers = brokers_of([1] * 16)
    found = shared_of(brokers, pairs_of({(0, 2): 6, (0, 1): 1, (13, 15): 3}))
    assert found is not None
    place = {broker.broker_id: row for row, broker in enumerate(brokers)}
    levels = pixels_of(found.image)
    assert [levels[place[one]][place[other]] for one, other in ((0, 2), (2, 0), (0, 1), (13, 15), (4, 5))] == [
        *(6, 6),
        *(1, 3, 0),
    ]
    assert sum(map(sum, levels)) == 2 * (6 + 1 + 3)
    assert found.counts == []
    assert found.axes == (
        "A dot is a pair of brokers; darker: more partitions in common. "
        "From the top and from the left: r0 (0 to 14), r1 (1 to 15)."
    )


def test_very_many_brokers_are_means_over_several() -> None:
    found = shared_of(brokers_of([1] * 300, racks=1), pairs_of({(0, 1): 3, (0, 3): 9}))
    assert found is not None
    levels = pixels_of(found.image)
    assert (len(levels), levels[0][0], levels[0][1], levels[1][0], levels[1][1]) == (100, 6, 6, 6, 0)
    assert found.axes.startswith("A dot is the mean over 3 by 3 brokers")
