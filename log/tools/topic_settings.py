"""Find the topic settings in the metadata log of a log directory that recovery would have to know.

Source: LogSegment.recover and LogConfig of kafka-storage, 4.3.1; KIP-226 for the default for all brokers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from broker.config import Scope, lookup, parse
from broker.errors import BrokersideError, UsageError
from log.log_config import LogConfig
from log.metadata.image import CLUSTER_DEFAULT, RESOURCE_BROKER, RESOURCE_TOPIC, Resource
from log.metadata.replay import Replay
from log.tools.sources import METADATA_DIRECTORY, metadata_files

Configs = Mapping[Resource, Mapping[str, str]]

OF_ALL_BROKERS: Final[Mapping[str, str]] = {
    "index.interval.bytes": "log.index.interval.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
}
"""The settings that recovery writes by, and the names of their defaults for all brokers."""


def unsaid_settings(log_dir: Path, topics: Sequence[str], config: LogConfig) -> Iterator[str]:
    """Yield a warning for each setting of a topic that the metadata log in `log_dir` has and `config` has not."""
    shown = log_dir / METADATA_DIRECTORY
    if not shown.is_dir():
        return
    try:
        configs = _configs(log_dir)
    except BrokersideError as error:
        yield f"whether topics have settings of their own is not known: {error}"
        return
    used = {"index.interval.bytes": config.index_interval_bytes, "segment.index.bytes": config.index_size_bytes}
    for topic in topics:
        for name, value in used.items():
            said = _said(configs, topic, name)
            if said is not None and said != value:
                yield (
                    f"topic {topic} has {name}={said} in {shown}, and is recovered with {value}; its indexes will"
                    f" differ from a broker's: give --config {name}={said}"
                )


def _configs(log_dir: Path) -> Configs:
    replay = Replay(metadata_files(log_dir))
    for _ in replay.steps():
        pass
    return replay.image().configs


def _said(configs: Configs, topic: str, name: str) -> int | None:
    """Return the value of a topic's setting, None where it has none that a broker would take."""
    own = configs.get(Resource(RESOURCE_TOPIC, topic), {}).get(name)
    default = configs.get(Resource(RESOURCE_BROKER, CLUSTER_DEFAULT), {}).get(OF_ALL_BROKERS[name])
    text = default if own is None else own
    if text is None:
        return None
    try:
        value = parse(lookup(name, Scope.TOPIC), text)
    except UsageError:
        return None
    assert isinstance(value, int), (name, value)
    return value
