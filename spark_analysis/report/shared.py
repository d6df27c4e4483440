"""Count the partitions that each two brokers share, broker by broker in rack order.

Up to `TABLE_BROKERS_MAX` brokers are a table with the numbers in it, shaded in six steps up to the largest; more
brokers are a PNG of one dot a pair, and beyond `DOTS_MAX` a dot is the mean over several. Its bytes depend on the
numbers alone: the pixels are stored, not compressed, as compressors differ from version to version.

Source: PNG specification (third edition), 11.2 (chunks).
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from itertools import groupby
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from spark_analysis.report.figures import count, decimal, plural
from spark_analysis.report.model import PairCounts
from spark_analysis.report.rows import BrokerLoad

__all__ = ("shared_of",)

TABLE_BROKERS_MAX: Final = 14
_LEVELS_MAX: Final = 6
DOTS_MAX: Final = 120
_COLOUR: Final = bytes((70, 110, 160))
"""The colour that the style sheet gives to heat; its opacity grows with the level."""
_OPACITIES: Final = bytes((0, 26, 58, 96, 138, 186, 240))
_RACKS_NAMED_MAX: Final = 12


@attrs.frozen
class Shared:
    """Hold the matrix of shared partitions and the level of each cell, or an image for many brokers, and a sentence."""

    counts: list[list[int]]
    levels: list[list[int]]
    image: str
    axes: str
    """Which brokers the rows and columns of the image are."""
    words: str


def shared_of(brokers: Sequence[BrokerLoad], pairs: PairCounts) -> Shared | None:
    """Return what `brokers` share, in their order; None without pairs or with fewer than two brokers."""
    if len(brokers) < 2 or not pairs.shared_counts.size:
        return None
    matrix = shared_matrix(brokers, pairs)
    words = pairs_in_words(brokers, matrix)
    if len(brokers) > TABLE_BROKERS_MAX:
        return Shared([], [], pair_image(matrix), _axes(brokers), words)
    levels = -(-matrix * _LEVELS_MAX // max(int(matrix.max()), 1))
    return Shared(matrix.tolist(), levels.tolist(), "", "", words)


def shared_matrix(brokers: Sequence[BrokerLoad], pairs: PairCounts) -> NDArray[np.int64]:
    """Return int64[B, B] of partitions shared by each pair of `brokers`, in their order; the diagonal is 0."""
    place = {broker.broker_id: row for row, broker in enumerate(brokers)}
    matrix = np.zeros((len(brokers), len(brokers)), dtype=np.int64)
    columns = pairs.broker_ids, pairs.other_broker_ids, pairs.shared_counts
    for one, other, shared in zip(*(column.tolist() for column in columns), strict=True):
        if one in place and other in place:
            matrix[place[one], place[other]] = matrix[place[other], place[one]] = shared
    return matrix


def _axes(brokers: Sequence[BrokerLoad]) -> str:
    """Return what a dot stands for, and the brokers of each rack in the order of rows and columns."""
    step = brokers_per_dot(len(brokers))
    dot = "A dot is a pair of brokers" if step == 1 else f"A dot is the mean over {step} by {step} brokers"
    racks = [
        f"{'no rack' if rack is None else rack} ({ids[0]}{f' to {ids[-1]}' if len(ids) > 1 else ''})"
        for rack, ids in ((rack, [one.broker_id for one in each]) for rack, each in groupby(brokers, _rack))
    ]
    listed = ", ".join(racks[:_RACKS_NAMED_MAX]) + (" and more" if len(racks) > _RACKS_NAMED_MAX else "")
    return f"{dot}; darker: more partitions in common. From the top and from the left: {listed}."


def _rack(broker: BrokerLoad) -> str | None:
    rack: str | None = broker.rack
    return rack


def pairs_in_words(brokers: Sequence[BrokerLoad], matrix: NDArray[np.int64]) -> str:
    """Return one sentence: the pair that shares most, the mean over pairs, the number of pairs that share none."""
    rows, columns = np.triu_indices(len(brokers), 1)
    shared = matrix[rows, columns]
    top = int(shared.argmax())
    first, second = sorted((brokers[rows[top]].broker_id, brokers[columns[top]].broker_id))
    apart = int(np.count_nonzero(shared == 0))
    rest = f"{plural(apart, 'pair')} without any in common" if apart else "every pair has some in common"
    return (
        f"Brokers {first} and {second} share most: {count(shared[top])} partitions, where the mean over all "
        f"{count(shared.size)} pairs is {decimal(float(shared.mean()), 1)}; {rest}."
    )


def levels_of(matrix: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return uint8 levels: 0 for no shared partition, 1 to 6 in equal steps up to the largest value.

    >>> levels_of(np.array([[0.0, 1.0], [3.0, 6.0]])).tolist()
    [[0, 1], [3, 6]]
    """
    most = float(matrix.max(initial=0.0))
    if most == 0:
        return np.zeros(matrix.shape, dtype=np.uint8)
    return np.ceil(matrix / most * (_LEVELS_MAX) - 1e-9).astype(np.uint8)


def brokers_per_dot(broker_count: int) -> int:
    """Return how many brokers a row of dots stands for."""
    return -(-broker_count // DOTS_MAX)


def pair_image(matrix: NDArray[np.int64]) -> str:
    """Return the image of int64[B, B] shared partitions, with a diagonal of 0, as a data URI."""
    step = brokers_per_dot(len(matrix))
    starts = np.arange(0, len(matrix), step)
    sums = np.add.reduceat(np.add.reduceat(matrix.astype(np.float64), starts, axis=0), starts, axis=1)
    sizes = np.diff(np.append(starts, len(matrix)))
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    levels = levels_of(sums / np.maximum(pairs, 1))
    pixels = b"".join(b"\0" + row.tobytes() for row in levels)
    side = len(starts)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 3, 0, 0, 0)),
        (b"PLTE", _COLOUR * (_LEVELS_MAX + 1)),
        (b"tRNS", _OPACITIES),
        (b"IDAT", zlib.compress(pixels, 0)),
        (b"IEND", b""),
    )
    png = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
