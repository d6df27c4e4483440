"""Name a live cluster as the command line does, and take its snapshot."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import attrs

from broker.errors import CorruptDataError, InputError
from broker.small_files import read_small
from log.storage.metadata_files import parse_properties
from spark_analysis.live.client import Asker
from spark_analysis.live.gather import gather
from spark_analysis.live.properties import ClientProperties, translated

LIVE: Final = "--bootstrap-server="
"""Begins what stands for a live cluster where else a path does."""
_CONFIG_BYTES_MAX: Final = 1 << 20


@attrs.frozen
class LiveCluster:
    """Name a cluster by the brokers to ask first, HOST:PORT with commas, and the properties file of the client."""

    servers: str
    command_config: str | None = None

    @property
    def path(self) -> str:
        """Return what stands for the cluster where else a path does."""
        return LIVE + self.servers

    def properties(self) -> ClientProperties:
        """Return the client's options; raise InputError for a file that cannot be used."""
        if self.command_config is None:
            return ClientProperties()
        data = read_small(Path(self.command_config), size_bytes_max=_CONFIG_BYTES_MAX)
        try:
            return translated(parse_properties(data), source=self.command_config)
        except CorruptDataError as error:
            raise InputError(error.what, source=self.command_config) from None


@attrs.frozen
class Snapshot:
    """Hold a snapshot as bytes, and what could not be read or had no effect, a sentence each."""

    data: bytes
    notes: tuple[str, ...]


def take_snapshot(cluster: LiveCluster) -> Snapshot:
    """Ask a cluster for its snapshot; raise InputError if none of its brokers answers, or refuses the client."""
    properties = cluster.properties()
    asker = Asker.of(cluster.servers, properties)
    taken_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    document = gather(asker, taken_at=taken_at)
    idle = [f"{cluster.command_config}: without effect: {', '.join(properties.idle)}"] if properties.idle else []
    return Snapshot(json.dumps(document, separators=(",", ":")).encode() + b"\n", (*idle, *asker.notes))
