"""Draw a state machine as text, Mermaid, Graphviz DOT or an SVG picture.

What it decides: the layout of the picture. The states are boxes from the top down in the order in which they are
declared; steps down run on the right, steps up on the left, each in a lane of its own so that no two labels meet.
Inputs that lead to a state from every other state, and inputs that leave a state as it is, stand inside its box.

Constraints: the same table gives the same bytes; the picture needs nothing from outside.

Example:

    >>> import enum
    >>> Light = enum.Enum("Light", "OFF ON")
    >>> Press = enum.Enum("Press", "ONCE")
    >>> print(drawn({(Light.OFF, Press.ONCE): Light.ON}, "dot"))
    digraph {
        node [shape=box];
        "off" -> "on" [label="once"];
    }

Left out: a layout that minimises crossings; Graphviz makes one of the DOT form.

Source: the DOT language of Graphviz; SVG 1.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from broker.drawing import svg
from broker.drawing.element import Markup, node
from broker.errors import UsageError
from broker.machines import Input, State, to_mermaid, to_text, word

FORMS: Final = ("text", "mermaid", "dot", "svg")
_LETTER: Final = 6.3
"""Pixels of an average letter at the size used."""
_LINE: Final = 15
_GAP: Final = 34
_TOP: Final = 54
_CLASS: Final = "machine"
_ROLES: Final = ("page", "raised", "ink", "quiet", "bar")
_RULES: Final = (
    ".machine .q{font-size:11px}.machine .name{font-weight:600;font-size:13px}"
    ".machine .label{paint-order:stroke;stroke:var(--page);stroke-width:4px}"
    ".machine .way{fill:none;stroke:var(--bar)}.machine .tip{fill:var(--bar)}"
    ".machine .box{fill:var(--raised);stroke:var(--bar)}"
)


def drawn(table: Mapping[tuple[State, Input], State], form: str, *, title: str = "") -> str:
    """Return the diagram of a table in `form`, one of FORMS; raise UsageError for another form."""
    if form == "text":
        return to_text(table)
    if form == "mermaid":
        return to_mermaid(table)
    if form == "dot":
        return to_dot(table)
    if form == "svg":
        return to_svg(table, title)
    raise UsageError(f"form {form!r} is not known; allowed are {', '.join(FORMS)}")


def to_dot(table: Mapping[tuple[State, Input], State]) -> str:
    """Return the table as a Graphviz digraph; inputs between the same two states share an arrow."""
    lines = [
        f'    "{word(source)}" -> "{word(target)}" [label="{", ".join(labels)}"];'
        for (source, target), labels in _arrows(table).items()
    ]
    return "\n".join(["digraph {", "    node [shape=box];", *lines, "}"])


def to_svg(table: Mapping[tuple[State, Input], State], title: str) -> str:
    """Return the table as an SVG picture."""
    states = list(type(next(iter(table.values()))))
    everywhere = _from_everywhere(table, states)
    boxes = _boxes(table, states, everywhere)
    arrows = [
        (source, target, labels)
        for (source, target), inputs in _arrows(table).items()
        if source is not target and (labels := [each for each in inputs if (each, target) not in everywhere])
    ]
    left, right = _lanes(arrows, boxes, downward=False), _lanes(arrows, boxes, downward=True)
    box_width = max(box.width for box in boxes.values())
    middle = sum(_width(lane) for lane in left) + 40 + box_width / 2
    width = middle + box_width / 2 + sum(_width(lane) for lane in right) + 40
    height = max(box.top + box.height for box in boxes.values()) + 24
    parts = [
        node("text", title, class_="name", x=20, y=28),
        *_ways(left, middle - box_width / 2, -1),
        *_ways(right, middle + box_width / 2, 1),
        *(line for box in boxes.values() for line in box.lines(middle, box_width)),
    ]
    style = svg.style(_CLASS, *_ROLES, rules=_RULES)
    return svg.document(_CLASS, title, (round(width), round(height)), style, parts, fixed=True)


@attrs.frozen
class _Box:
    """A state's box: its place, and what stands in it."""

    top: float
    name: str
    notes: tuple[str, ...]

    @property
    def height(self) -> float:
        return 22 + _LINE * len(self.notes) + 6

    @property
    def width(self) -> float:
        return 24 + max(len(text) for text in (self.name + "  ", *self.notes)) * _LETTER

    def lines(self, middle: float, width: float) -> Iterator[Markup]:
        """Yield the box, centred at `middle`: its frame, its name, its notes."""
        left, right = f"{middle - width / 2:.0f}", f"{width:.0f}"
        yield node("rect", class_="box", x=left, y=f"{self.top:.0f}", width=right, height=f"{self.height:.0f}", rx=5)
        yield _text("name", self.name, middle, self.top + 18)
        for number, note in enumerate(self.notes, start=1):
            yield _text("q", note, middle, self.top + 18 + _LINE * number)


@attrs.frozen
class _Way:
    """One arrow's way from port to port, beside the boxes."""

    start: float
    end: float
    labels: tuple[str, ...]

    def meets(self, other: _Way) -> bool:
        """Whether two ways, or their labels, would lie upon each other in one lane."""
        return all(one.bottom + 8 > two.top for one, two in ((self, other), (other, self)))

    @property
    def top(self) -> float:
        return min(self.start, self.end, (self.start + self.end - _LINE * len(self.labels)) / 2)

    @property
    def bottom(self) -> float:
        return max(self.start, self.end, (self.start + self.end + _LINE * len(self.labels)) / 2)


def _arrows(table: Mapping[tuple[State, Input], State]) -> dict[tuple[State, State], list[str]]:
    """Return the inputs between each two states, in the order in which states and inputs are declared."""
    states = list(type(next(iter(table.values()))))
    inputs = list(type(next(iter(table))[1]))
    arrows: dict[tuple[State, State], list[str]] = {}
    for source in states:
        for event in inputs:
            if (source, event) in table:
                arrows.setdefault((source, table[source, event]), []).append(word(event))
    return arrows


def _from_everywhere(table: Mapping[tuple[State, Input], State], states: list[State]) -> set[tuple[str, State]]:
    """Return the inputs that lead to one state from every other one."""
    found = set()
    for event in type(next(iter(table))[1]):
        targets = {state: table[state, event] for state in states if (state, event) in table}
        only = set(targets.values())
        if len(only) == 1 and len(states) > 2 and only | targets.keys() == set(states):
            found.add((word(event), only.pop()))
    return found


def _boxes(
    table: Mapping[tuple[State, Input], State], states: list[State], everywhere: set[tuple[str, State]]
) -> dict[State, _Box]:
    boxes: dict[State, _Box] = {}
    top = float(_TOP)
    for state in states:
        coming = [label for label, target in sorted(everywhere, key=lambda each: each[0]) if target is state]
        staying = [each for each in _arrows(table).get((state, state), []) if each not in coming]
        notes = [*_wrapped("from everywhere", coming), *_wrapped("stays", staying)]
        boxes[state] = _Box(top, word(state), tuple(notes))
        top += boxes[state].height + _GAP
    return boxes


def _wrapped(heading: str, labels: list[str]) -> Iterator[str]:
    """Yield notes of at most some forty letters."""
    line = f"{heading}: "
    for number, label in enumerate(labels):
        text = label + ("," if number + 1 < len(labels) else "")
        if len(line) + len(text) > 44 and not line.endswith(": "):
            yield line.rstrip()
            line = ""
        line += text + " "
    if labels:
        yield line.rstrip()


def _lanes(
    arrows: list[tuple[State, State, list[str]]], boxes: dict[State, _Box], *, downward: bool
) -> tuple[tuple[_Way, ...], ...]:
    """Return the ways of one side by lane, the shortest nearest to the boxes; no two ways of a lane meet."""
    order = list(boxes)
    chosen = [each for each in arrows if (order.index(each[1]) > order.index(each[0])) is downward]
    chosen.sort(key=lambda each: (abs(order.index(each[1]) - order.index(each[0])), order.index(each[0])))
    ports = {state: sum(state in (source, target) for source, target, _ in chosen) for state in order}
    used = dict.fromkeys(order, 0)

    def port(state: State) -> float:
        used[state] += 1
        return boxes[state].top + boxes[state].height * used[state] / (ports[state] + 1)

    lanes: list[list[_Way]] = []
    for source, target, labels in chosen:
        way = _Way(port(source), port(target), tuple(labels))
        for lane in lanes:
            if not any(way.meets(other) for other in lane):
                lane.append(way)
                break
        else:
            lanes.append([way])
    return tuple(tuple(lane) for lane in lanes)


def _width(lane: tuple[_Way, ...]) -> float:
    return 22 + max(len(label) for way in lane for label in way.labels) * _LETTER


def _ways(lanes: tuple[tuple[_Way, ...], ...], edge: float, side: int) -> Iterator[Markup]:
    """Yield the arrows of one side; `edge` is where the boxes end, `side` 1 for the right and -1 for the left."""
    x = edge
    labels: list[Markup] = []
    for lane in lanes:
        near = x + side * 16
        x += side * _width(lane)
        for way in lane:
            d = f"M{edge:.0f},{way.start:.0f} H{near:.0f} V{way.end:.0f} H{edge + side * 6:.0f}"
            yield node("path", class_="way", d=d)
            tip = edge + side * 7
            d = f"M{edge:.0f},{way.end:.0f} L{tip:.0f},{way.end - 4:.0f} V{way.end + 4:.0f} Z"
            yield node("path", class_="tip", d=d)
            labels.extend(_labels(way, near + side * 5, "start" if side > 0 else "end"))
    yield from labels


def _labels(way: _Way, x: float, anchor: str) -> Iterator[Markup]:
    first = (way.start + way.end) / 2 - _LINE * (len(way.labels) - 1) / 2 + 4
    for number, label in enumerate(way.labels):
        yield _text("q label", label, x, first + _LINE * number, anchor)


def _text(class_: str, text: str, x: float, y: float, anchor: str = "middle") -> Markup:
    return node("text", text, class_=class_, x=f"{x:.0f}", y=f"{y:.0f}", text_anchor=anchor)
