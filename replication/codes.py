"""The error codes; see `broker.error_codes`."""

from __future__ import annotations

from broker.error_codes import ErrorCode

__all__ = ("ErrorCode",)
