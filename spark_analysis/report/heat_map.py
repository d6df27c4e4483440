"""Show which brokers share partitions, broker by broker in rack order.

Up to `TABLE_BROKERS_MAX` brokers are a table with the numbers in it. More brokers are a picture of one cell a pair, in
seven levels from nothing to the most; beyond `CELLS_MAX` brokers a side, a cell stands for several brokers and shows
their mean.

Source: PNG specification (third edition), 11.2 (chunks); RFC 1950 and 1951 (stored blocks).
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from broker.drawing.element import Content, Markup, tag
from broker.drawing.figure import WIDTH, figure, line, text
from broker.drawing.palette import LIGHT
from broker.drawing.scale import clipped, number
from spark_analysis.report.figures import count, decimal, plural
from spark_analysis.report.model import PairCounts
from spark_analysis.report.rows import BrokerLoad

Float64Array = NDArray[np.float64]

TABLE_BROKERS_MAX: Final = 14
CELLS_MAX: Final = 120
LEVELS: Final = 7
_OPACITIES: Final = (0, 26, 58, 96, 138, 186, 240)
_COLOUR: Final = bytes(int(part) for part in LIGHT.heat.split())
_SIDE: Final = 420
_LEFT: Final = 92
_CELLS_KEPT_MAX: Final = 4_096


def shared_matrix(brokers: Sequence[BrokerLoad], pairs: PairCounts) -> Float64Array:
    """Return float64[B, B] of partitions shared by each pair of `brokers`, in their order; the diagonal is 0."""
    place = {broker.broker_id: row for row, broker in enumerate(brokers)}
    matrix = np.zeros((len(brokers), len(brokers)))
    for one, other, shared in zip(
        pairs.broker_ids.tolist(), pairs.other_broker_ids.tolist(), pairs.shared_counts.tolist(), strict=True
    ):
        if one in place and other in place:
            matrix[place[one], place[other]] = matrix[place[other], place[one]] = shared
    return matrix


def levels_of(matrix: Float64Array) -> NDArray[np.uint8]:
    """Return uint8 levels: 0 for no shared partition, 1..6 in equal steps up to the largest value.

    >>> levels_of(np.array([[0.0, 1.0], [3.0, 6.0]])).tolist()
    [[0, 1], [3, 6]]
    """
    most = float(matrix.max(initial=0.0))
    if most == 0:
        return np.zeros(matrix.shape, dtype=np.uint8)
    return np.ceil(matrix / most * (LEVELS - 1) - 1e-9).astype(np.uint8)


def heat_map(identifier: str, brokers: Sequence[BrokerLoad], pairs: PairCounts) -> Markup | None:
    """Return the table or picture of `brokers` in rack order; None without pairs or with fewer than two brokers."""
    if len(brokers) < 2 or not pairs.shared_counts.size:
        return None
    matrix = shared_matrix(brokers, pairs)
    drawn = _table(brokers, matrix) if len(brokers) <= TABLE_BROKERS_MAX else _picture(identifier, brokers, matrix)
    return tag("div", drawn, tag("p", pairs_in_words(brokers, matrix), class_="note"))


def pairs_in_words(brokers: Sequence[BrokerLoad], matrix: Float64Array) -> str:
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


def _table(brokers: Sequence[BrokerLoad], matrix: Float64Array) -> Markup:
    shared, levels = matrix.tolist(), levels_of(matrix).tolist()
    head = [tag("th", str(broker.broker_id), scope="col") for broker in brokers]
    body = []
    for row, broker in enumerate(brokers):
        name = f"{broker.broker_id}" if broker.rack is None else f"{broker.broker_id} · {clipped(broker.rack, 16)}"
        cells = [
            tag("td", "·", class_="self") if row == column else _cell(count(shared[row][column]), levels[row][column])
            for column in range(len(brokers))
        ]
        body.append(tag("tr", tag("th", name, scope="row"), *cells))
    return tag(
        "div",
        tag(
            "table",
            tag("caption", "Partitions that two brokers share, brokers in rack order"),
            tag("thead", tag("tr", tag("td", "broker"), *head)),
            tag("tbody", *body),
            class_="heat",
        ),
        class_="scroll",
        role="region",
        aria_label="Shared partitions",
        tabindex=0,
    )


@lru_cache(maxsize=_CELLS_KEPT_MAX)
def _cell(shown: str, level: int) -> Markup:
    """Return the HTML of one cell; it is cached, as most clusters have the same cells."""
    return tag("td", shown, class_=f"h{level}")


def _picture(identifier: str, brokers: Sequence[BrokerLoad], matrix: Float64Array) -> Markup:
    per_cell = -(-len(brokers) // CELLS_MAX)
    cells = _binned(matrix, per_cell)
    side = float(_SIDE)
    unit = side / cells.shape[0] / per_cell
    source = "data:image/png;base64," + base64.b64encode(indexed_png(levels_of(cells))).decode("ascii")
    drawn: list[Content] = [
        tag("image", href=source, x=_LEFT, y=8, width=_SIDE, height=_SIDE, preserveAspectRatio="none", class_="pixels"),
        tag("rect", x=_LEFT, y=8, width=_SIDE, height=_SIDE, class_="frame"),
        *_rack_marks(brokers, unit),
        text(_LEFT + side / 2, 8 + side + 40, "brokers, in rack order", anchor="middle", class_="quiet"),
        *_legend(float(cells.max()), whole=per_cell == 1),
    ]
    note = "" if per_cell == 1 else f"; a cell is the mean over {per_cell} by {per_cell} brokers"
    drawn_figure = figure(
        f"{identifier}-h",
        f"Partitions that two brokers share{note}",
        pairs_in_words(brokers, matrix),
        8 + side + 50,
        *drawn,
    )
    label = "Picture of the shared partitions"
    return tag("div", drawn_figure, class_="scroll", role="region", tabindex=0, aria_label=label)


def _binned(matrix: Float64Array, per_cell: int) -> Float64Array:
    if per_cell == 1:
        return matrix
    starts = np.arange(0, matrix.shape[0], per_cell)
    sums = np.add.reduceat(np.add.reduceat(matrix, starts, axis=0), starts, axis=1)
    sizes = np.diff(np.append(starts, matrix.shape[0]))
    means: Float64Array = sums / np.outer(sizes, sizes)
    return means


def _rack_marks(brokers: Sequence[BrokerLoad], unit: float) -> list[Content]:
    drawn: list[Content] = []
    start = 0
    for rack, members in groupby(brokers, key=lambda broker: broker.rack):
        size = len(list(members))
        at, middle = start * unit, (start + size / 2) * unit
        if start:
            drawn.append(line(_LEFT + at, 8, _LEFT + at, 8 + _SIDE, "frame"))
            drawn.append(line(_LEFT, 8 + at, _LEFT + _SIDE, 8 + at, "frame"))
        name = "no rack" if rack is None else rack
        if size * unit >= 14:
            drawn.append(text(_LEFT - 6, 12 + middle, clipped(name, 13), anchor="end"))
        if size * unit >= 7 * min(len(name), 6):
            drawn.append(
                text(_LEFT + middle, 8 + _SIDE + 18, clipped(name, max(1, int(size * unit / 7))), anchor="middle")
            )
        start += size
    return drawn


def _legend(most: float, *, whole: bool) -> list[Content]:
    left, top = _LEFT + _SIDE + 36, 30
    drawn: list[Content] = [text(left, top - 12, "partitions shared", class_="strong")]
    y = top
    for level in range(LEVELS - 1, -1, -1):
        label = _range_of(level, most, whole=whole)
        if label is not None:
            drawn.append(tag("rect", x=left, y=y, width=22, height=16, class_=f"frame key{level}"))
            drawn.append(text(left + 30, y + 12, label))
            y += 22
    assert left + 120 < WIDTH, number(left)
    return drawn


def _range_of(level: int, most: float, *, whole: bool) -> str | None:
    """Return the values of a level in words; None where no whole number falls into the level."""
    if level == 0:
        return "none"
    upper = most * level / (LEVELS - 1)
    if not whole:
        return f"up to {decimal(upper, 1)}"
    low, high = math.floor(most * (level - 1) / (LEVELS - 1)) + 1, math.floor(upper + 1e-9)
    if low > high:
        return None
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def indexed_png(levels: NDArray[np.uint8]) -> bytes:
    """Return a PNG of `levels` (uint8[H, W], 0..6): four bits a pixel, stored blocks, one colour at seven opacities."""
    height, width = levels.shape
    even = np.pad(levels, ((0, 0), (0, width % 2)))
    packed = (even[:, 0::2] << 4) | even[:, 1::2]
    lines = np.pad(packed, ((0, 0), (1, 0))).tobytes()  # Each line begins with filter 0: none.
    header = struct.pack(">IIBBBBB", width, height, 4, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", header),
        (b"PLTE", _COLOUR * LEVELS),
        (b"tRNS", bytes(_OPACITIES)),
        (b"IDAT", _stored(lines)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _stored(data: bytes) -> bytes:
    blocks = []
    for start in range(0, len(data), 0xFFFF):
        part = data[start : start + 0xFFFF]
        last = start + len(part) == len(data)
        blocks.append(struct.pack("<BHH", last, len(part), len(part) ^ 0xFFFF) + part)
    return b"\x78\x01" + b"".join(blocks) + struct.pack(">I", zlib.adler32(data))
