"""Model the group coordinator inside a broker.

`routing` says which broker coordinates a group.
"""

from __future__ import annotations

from broker.group.routing import offsets_partition, positive_hash

__all__ = ("offsets_partition", "positive_hash")
