"""Print and read Kafka's 16-byte ids as 22 characters of URL-safe Base64.

Source: org.apache.kafka.common.Uuid, 4.3.1; java.util.Base64, Java 17.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

UUID_SIZE_BYTES: Final = 16
_BASE64_URL: Final = re.compile(r"[A-Za-z0-9_-]*={0,2}")
_UUID_TEXT_LENGTH_MAX: Final = 24  # Kafka's own bound: 22 digits and padding.


def encode_uuid(uuid: bytes) -> str:
    """Return the 22 characters that Kafka prints for an id of 16 bytes."""
    assert len(uuid) == UUID_SIZE_BYTES, uuid
    return urlsafe_b64encode(uuid).decode("ascii").rstrip("=")


def decode_uuid(text: str) -> bytes | None:
    """Return the 16 bytes of an id; None where Kafka's `Uuid.fromString` throws."""
    if len(text) > _UUID_TEXT_LENGTH_MAX or _BASE64_URL.fullmatch(text) is None:
        return None
    digits = text.rstrip("=")
    if len(digits) % 4 == 1 or (digits != text and len(text) % 4):
        return None
    decoded = urlsafe_b64decode(digits + "=" * (-len(digits) % 4))
    return decoded if len(decoded) == UUID_SIZE_BYTES else None
