"""Bytes in order: one partition's segments on one disk.

Nothing stands here yet; the package keeps its place between placement and replication, so that the
direction of imports is fixed from the start.
"""

from __future__ import annotations

__all__: tuple[str, ...] = ()
