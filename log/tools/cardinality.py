"""Count different keys, exactly up to a million and estimated above.

Source: Flajolet, Fusy, Gandouet, Meunier: HyperLogLog (2007).
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Hashes: TypeAlias = NDArray[np.uint64]

EXACT_MAX: Final = 1 << 20
PENDING_MAX: Final = 1 << 18
REGISTER_BITS: Final = 14
REGISTER_COUNT: Final = 1 << REGISTER_BITS
_ALPHA: Final = 0.7213 / (1 + 1.079 / REGISTER_COUNT)


class Cardinality:
    """Count different key hashes; empty at first."""

    def __init__(self) -> None:
        self._seen: Hashes | None = np.zeros(0, np.uint64)
        self._pending: list[Hashes] = []
        self._pending_count = 0
        self._registers = np.zeros(REGISTER_COUNT, np.int32)  # As frexp's exponents: maximum.at is slow where it casts.

    @property
    def is_exact(self) -> bool:
        """Return whether `count` is exact and not an estimate."""
        return self._settled() is not None

    @property
    def count(self) -> int:
        """Return the number of different keys."""
        seen = self._settled()
        return self._estimate() if seen is None else len(seen)

    def take(self, low: Hashes, high: Hashes) -> None:
        """Add the hashes of some keys: two halves per key, uint64[N]."""
        run_of_zeros = 65 - np.frexp(high.astype(np.float64))[1]
        np.maximum.at(self._registers, (low & np.uint64(REGISTER_COUNT - 1)).astype(np.intp), run_of_zeros)
        if self._seen is not None:
            taken = _different(low)
            places = np.minimum(np.searchsorted(self._seen, taken), max(0, len(self._seen) - 1))
            self._add(taken[self._seen[places] != taken] if len(self._seen) else taken)

    def merge(self, other: Cardinality) -> None:
        """Add all keys of `other`."""
        np.maximum(self._registers, other._registers, out=self._registers)
        seen = other._settled()
        if seen is None:
            self._seen = None
        elif self._seen is not None:
            self._add(seen)

    def _add(self, hashes: Hashes) -> None:
        self._pending.append(hashes)
        self._pending_count += len(hashes)
        if self._pending_count > PENDING_MAX:
            self._settled()

    def _settled(self) -> Hashes | None:
        """Return all that was seen, sorted; None once that is too much."""
        if self._seen is not None and self._pending:
            self._seen = _different(np.concatenate((self._seen, *self._pending)))
            if len(self._seen) > EXACT_MAX:
                self._seen = None
        self._pending.clear()
        self._pending_count = 0
        return self._seen

    def _estimate(self) -> int:
        return round(_ALPHA * REGISTER_COUNT**2 / float(np.sum(2.0**-self._registers)))


def _different(hashes: Hashes) -> Hashes:
    """Return each of them once, in order; NumPy's own `unique` takes fifty times as long for a million of them."""
    ordered = np.sort(hashes)
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]
