"""Print the small files of a log directory: checkpoints, metadata and the clean-shutdown marker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from log.storage.checkpoints import LEADER_EPOCH_FILE, read_epoch_checkpoint, read_offset_checkpoint
from log.storage.metadata_files import (
    META_PROPERTIES_FILE,
    PARTITION_METADATA_FILE,
    read_clean_shutdown,
    read_meta_properties,
    read_partition_metadata,
)
from log.tools.sources import OFFSET_CHECKPOINTS, SourceFile


def small_file_rows(file: SourceFile) -> Iterator[dict[str, Any]]:
    """Yield the entries of a checkpoint, properties or marker file as JSON rows; raise CheckpointError."""
    storage, path = file.storage, file.path
    if file.name in OFFSET_CHECKPOINTS:
        for key, offset in read_offset_checkpoint(storage, path).items():
            yield {"topic": key.topic, "partition": key.partition, "offset": offset}
    elif file.name == LEADER_EPOCH_FILE:
        for entry in read_epoch_checkpoint(storage, path):
            yield {"epoch": entry.epoch, "startOffset": entry.start_offset}
    elif file.name == PARTITION_METADATA_FILE:
        metadata = read_partition_metadata(storage, path)
        if metadata is not None:
            yield {"version": metadata.version, "topicId": metadata.topic_id}
    elif file.name == META_PROPERTIES_FILE:
        properties = read_meta_properties(storage, path)
        if properties is not None:
            yield {
                "version": properties.version,
                "clusterId": properties.cluster_id,
                "nodeId": properties.node_id,
                "directoryId": properties.directory_id,
            }
    else:
        yield {"brokerEpoch": read_clean_shutdown(storage, path)}


def small_file_lines(file: SourceFile) -> Iterator[str]:
    """Yield one line per entry of the file; raise CheckpointError."""
    for row in small_file_rows(file):
        yield " ".join(f"{name}: {value}" for name, value in row.items() if value is not None)
