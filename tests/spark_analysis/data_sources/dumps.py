"""Dumps for the tests of data sources: small describes, whole and damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Final

REAL: Final = Path(__file__).parents[2] / "real_data"
KRAFT: Final = REAL / "kraft"
MULTIREGION: Final = REAL / "multiregion"


def describe(partition_count: int, *, topic: str = "orders", declared: int | None = None) -> str:
    """Return a describe of one topic of factor 3 on brokers 1 to 3; partition 0 has no leader."""
    head = f"Topic: {topic}\tTopicId: AAAAAAAAAAAAAAAAAAAAAQ\tPartitionCount: {declared or partition_count}\t"
    lines = [f"{head}ReplicationFactor: 3\tConfigs: min.insync.replicas=2"]
    for number in range(partition_count):
        leader = "none" if number == 0 else str(number % 3 + 1)
        held = ",".join(str((number + place) % 3 + 1) for place in range(3))
        lines.append(f"\tTopic: {topic}\tPartition: {number}\tLeader: {leader}\tReplicas: {held}\tIsr: {held}")
    return "\n".join(lines) + "\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
