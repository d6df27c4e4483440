"""Several brokers agreeing, and failing.

Nothing stands here yet; the package keeps its place above placement and log, so that the direction of
imports is fixed from the start.
"""

from __future__ import annotations

__all__: tuple[str, ...] = ()
