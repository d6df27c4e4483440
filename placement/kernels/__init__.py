"""Tiny loops compiled with numba, each beside a readable twin that tests compare it with."""

from __future__ import annotations

from typing import Final

COMPILED_REPLICA_COUNT_MIN: Final = 20_000  # Plain Python places these in less time than importing numba takes.
