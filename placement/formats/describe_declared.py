"""Hold the topic lines of one cluster in columns, and make TopicViews of them.

Goals, most important first: some thirty bytes and one text, the id, a topic while a dump is read; each TopicView made
once, and only for who looks at topics: a third of a million of them take as long as splitting the lines of the dump.

Constraints: a topic is declared once: the first line stays, later ones come back as `RepeatedTopicLine`.

How: a cluster's topics share a few settings, so each distinct text of Configs is parsed
once, with care, and remembered; settings 0 are those of a line that says none.

Example: two topics with Configs "min.insync.replicas=2" have settings_index 1 and 1, and settings[1] is
(2, (("min.insync.replicas", "2"),)).

Left out: topics that have no line; their views hold the name alone. Source: ours.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, overload

import attrs
import numpy as np

from broker.cluster import PAD, Int32Array, Int64Array, TopicView
from placement.formats.collector import collector_paused
from placement.formats.describe_line import TopicLine, parse_line
from placement.formats.text import escaped

Settings = tuple[int | None, tuple[tuple[str, str], ...]]

NOTHING_SAID: Final[Settings] = (None, ())
_SETTINGS_MAX: Final = 4096
_BEFORE_CONFIGS: Final = "Topic: a\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: "


@attrs.frozen
class RepeatedTopicLine:
    """Report a topic line for a topic that an earlier line declares."""

    line: int
    first_line: int
    topic_index: int


@attrs.frozen(kw_only=True, eq=False)
class Declared:
    """Hold the finished columns, one row per topic line in line order; -1 where a line lacks the field."""

    line: Int64Array
    topic_index: Int32Array
    partition_count: Int32Array
    replication_factor: Int32Array
    settings_index: Int32Array
    topic_ids: tuple[str | None, ...]
    settings: tuple[Settings, ...]
    again: tuple[RepeatedTopicLine, ...]

    def views(
        self, names: list[str], order: Int64Array, min_insync_replicas_default: int | None
    ) -> Sequence[TopicView]:
        """Return the TopicViews of the topics `order`, numbers in `names`, created on first access."""
        return TopicsOnDemand(order.size, lambda: self._made(names, order, min_insync_replicas_default))

    def _made(
        self, names: list[str], order: Int64Array, min_insync_replicas_default: int | None
    ) -> tuple[TopicView, ...]:
        row = np.full(len(names), -1, dtype=np.int64)
        row[self.topic_index] = np.arange(self.topic_index.shape[0])
        row = row[order]  # What follows appends what row -1 finds: the topic without a line.
        settings = [
            (min_insync_replicas_default if minimum is None else minimum, configs) for minimum, configs in self.settings
        ]
        chosen = [settings[number] for number in np.append(self.settings_index, 0)[row].tolist()]
        topic_ids = (*self.topic_ids, None)
        columns = (
            [names[number] for number in order.tolist()],
            _said(np.append(self.partition_count, PAD)[row]),
            _said(np.append(self.replication_factor, PAD)[row]),
            [minimum for minimum, _ in chosen],
            [topic_ids[place] for place in row.tolist()],
            [configs for _, configs in chosen],
        )
        with collector_paused():
            return tuple(map(TopicView, *columns))


class TopicsOnDemand(Sequence[TopicView]):
    """Hold TopicViews whose number is known and which are all created on first access."""

    def __init__(self, count: int, make: Callable[[], tuple[TopicView, ...]]) -> None:
        self._count = count
        self._make = make

    @functools.cached_property
    def _views(self) -> tuple[TopicView, ...]:
        return self._make()

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> TopicView: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[TopicView, ...]: ...
    def __getitem__(self, place: int | slice) -> TopicView | tuple[TopicView, ...]:
        return self._views[place]

    def __iter__(self) -> Iterator[TopicView]:
        return iter(self._views)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._views == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # A sequence that compares by content and is no key of anything.

    def __repr__(self) -> str:
        return repr(self._views)


def _said(column: Int32Array) -> list[int | None]:
    return [None if value < 0 else value for value in column.tolist()]


@attrs.define(eq=False)
class TopicLines:
    """Collect the topic lines of one cluster, in columns that grow; -1 where a line lacks the field."""

    line: array[int] = attrs.field(factory=lambda: array("q"))
    topic_index: array[int] = attrs.field(factory=lambda: array("i"))
    partition_count: array[int] = attrs.field(factory=lambda: array("i"))
    replication_factor: array[int] = attrs.field(factory=lambda: array("i"))
    settings_index: array[int] = attrs.field(factory=lambda: array("i"))
    topic_ids: list[str | None] = attrs.field(factory=list)
    settings: list[Settings] = attrs.field(factory=lambda: [NOTHING_SAID])
    _known: dict[str, int] = attrs.field(factory=dict)

    def add(self, line: int, topic_index: int, topic: TopicView) -> None:
        """Append one topic line that `describe_line` has parsed."""
        self.line.append(line)
        self.topic_index.append(topic_index)
        self.partition_count.append(PAD if topic.partition_count is None else topic.partition_count)
        self.replication_factor.append(PAD if topic.replication_factor is None else topic.replication_factor)
        self.topic_ids.append(topic.topic_id)
        self.settings_index.append(len(self.settings) if topic.configs else 0)
        if topic.configs:
            self.settings.append((topic.min_insync_replicas, topic.configs))

    def add_many(
        self,
        line: Int64Array,
        topic_index: Int32Array,
        partition_count: Int32Array,
        replication_factor: Int32Array,
        settings_index: Int32Array,
        topic_ids: list[str],
    ) -> None:
        """Append lines given as columns of one length; an empty id means that there is none."""
        self.line.frombytes(line.tobytes())
        self.topic_index.frombytes(topic_index.tobytes())
        self.partition_count.frombytes(partition_count.tobytes())
        self.replication_factor.frombytes(replication_factor.tobytes())
        self.settings_index.frombytes(settings_index.tobytes())
        self.topic_ids += [text or None for text in topic_ids]

    def numbers_of_settings(self, texts: Iterable[str]) -> Int32Array:
        """Return the number of the settings in each Configs text; -1 where only `describe_line` can parse the text.

        The texts are bytes as Latin-1.
        """
        return np.array([self._number_of_settings(text) for text in texts], dtype=np.int32)

    def _number_of_settings(self, text: str) -> int:
        known = self._known.get(text)
        if known is not None:
            return known
        if len(self._known) >= _SETTINGS_MAX:
            return PAD
        number = PAD
        parsed = parse_line(_BEFORE_CONFIGS + escaped(text.encode("latin-1")))
        if isinstance(parsed, TopicLine) and not parsed.marked_for_deletion:
            number = len(self.settings) if parsed.topic.configs else 0
            if number:
                self.settings.append((parsed.topic.min_insync_replicas, parsed.topic.configs))
            self._known[text] = number
        return number

    def close(self) -> Declared:
        """Return the columns in line order, with the first line of each topic."""
        line = np.array(self.line, dtype=np.int64)
        by_line = np.argsort(line, kind="stable")
        topic_index = np.array(self.topic_index, dtype=np.int32)[by_line]
        _, first, same = np.unique(topic_index, return_index=True, return_inverse=True)
        repeated = np.flatnonzero(first[same] != np.arange(line.shape[0]))
        again = tuple(
            RepeatedTopicLine(
                int(line[by_line[place]]), int(line[by_line[first[same[place]]]]), int(topic_index[place])
            )
            for place in repeated.tolist()
        )
        kept = by_line[np.sort(first)]
        return Declared(
            line=line[kept],
            topic_index=np.array(self.topic_index, dtype=np.int32)[kept],
            partition_count=np.array(self.partition_count, dtype=np.int32)[kept],
            replication_factor=np.array(self.replication_factor, dtype=np.int32)[kept],
            settings_index=np.array(self.settings_index, dtype=np.int32)[kept],
            topic_ids=tuple(self.topic_ids[place] for place in kept.tolist()),
            settings=tuple(self.settings),
            again=again,
        )
