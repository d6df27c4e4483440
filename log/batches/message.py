"""Define Message, which holds the positions of the parts of one message of magic 0 or 1.

Source: ours.
"""

from __future__ import annotations

import attrs

from broker.ids import Offset
from broker.units import TimeMs


@attrs.frozen
class Message:
    """Hold the positions of the parts of one plain message in a buffer; sizes are -1 for null."""

    offset: Offset
    timestamp: TimeMs
    position: int
    size_bytes: int
    key_position: int
    key_size: int
    value_position: int
    value_size: int
