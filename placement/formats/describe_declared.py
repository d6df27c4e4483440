"""Collect the topic lines of one cluster, and make TopicViews of them.

Constraints: a topic is declared once: the first line stays, later ones come back as `RepeatedTopicLine`. Topics share
a few settings, so each distinct text of Configs is parsed once and remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int64Array, TopicView
from placement.formats.describe_line import TopicLine, parse_line
from placement.formats.documents import collector_paused
from placement.formats.text import escaped

Settings = tuple[int | None, tuple[tuple[str, str], ...]]

_SETTINGS_MAX: Final = 4096  # Texts of at most 8 KiB each: 32 MiB.
_BEFORE_CONFIGS: Final = "Topic: a\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: "


@attrs.frozen
class RepeatedTopicLine:
    """Report a topic line for a topic that an earlier line declares."""

    line: int
    first_line: int
    topic_index: int


@attrs.frozen(kw_only=True, eq=False)
class Declared:
    """Hold the first topic line of each topic in line order: its number, topic, and partition count (-1 for none)."""

    line: Int64Array
    topic_index: Int64Array
    partition_count: Int64Array
    repeated: tuple[RepeatedTopicLine, ...]


@attrs.define(eq=False)
class TopicLines:
    """Hold for each topic line its number, topic, counts, id and settings; None where the line lacks a field."""

    _lines: list[tuple[int, int, int | None, int | None, str | None, Settings]] = attrs.field(factory=list)
    _known: dict[str, Settings] = attrs.field(factory=dict)

    def add(
        self,
        line: int,
        topic_index: int,
        partition_count: int | None,
        replication_factor: int | None,
        topic_id: str | None,
        settings: Settings,
    ) -> None:
        """Append one topic line; `settings` are its min.insync.replicas and its configs."""
        self._lines.append((line, topic_index, partition_count, replication_factor, topic_id, settings))

    def settings_of(self, text: str) -> Settings | None:
        """Return the settings in a Configs text, bytes as Latin-1; None where only `describe_line` can parse it."""
        if text in self._known:
            return self._known[text]
        if len(self._known) >= _SETTINGS_MAX:
            return None
        parsed = parse_line(_BEFORE_CONFIGS + escaped(text.encode("latin-1")))
        if not isinstance(parsed, TopicLine) or parsed.marked_for_deletion:
            return None
        settings = parsed.topic.min_insync_replicas, parsed.topic.configs
        self._known[text] = settings
        return settings

    def close(self) -> Declared:
        """Return the columns in line order, with the first line of each topic."""
        self._lines.sort(key=lambda one: one[0])
        first: dict[int, int] = {}
        repeated = tuple(
            RepeatedTopicLine(line, first[topic], topic)
            for line, topic, *_ in self._lines
            if first.setdefault(topic, line) != line
        )
        if repeated:
            self._lines = [one for one in self._lines if first[one[1]] == one[0]]
        return Declared(
            line=np.array([one[0] for one in self._lines], np.int64),
            topic_index=np.array([one[1] for one in self._lines], np.int64),
            partition_count=np.array([-1 if one[2] is None else one[2] for one in self._lines], np.int64),
            repeated=repeated,
        )

    def views(self, names: Sequence[str], order: Sequence[int]) -> tuple[TopicView, ...]:
        """Return the TopicViews of the topics `order`, numbers in `names`; one without a line has its name."""
        by_topic = {one[1]: one for one in self._lines}
        lacking = (0, 0, None, None, None, (None, ()))
        views = []
        with collector_paused():
            for topic in order:
                _, _, partition_count, factor, topic_id, (minimum, configs) = by_topic.get(topic, lacking)
                views.append(TopicView(names[topic], partition_count, factor, minimum, topic_id, configs))
        return tuple(views)
