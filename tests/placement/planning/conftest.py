"""Fast tests of plans are small: kernels are interpreted, and no test waits for a compiler."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.compiled import INTERPRETED_ACCESSES_MAX, interpreted_at_most


@pytest.fixture(autouse=True)
def interpreted(request: pytest.FixtureRequest) -> Iterator[None]:
    """Interpret every kernel of a fast test; a deep one compiles what is worth it."""
    is_deep = request.node.get_closest_marker("deep") is not None
    with interpreted_at_most(INTERPRETED_ACCESSES_MAX if is_deep else 1 << 40):
        yield
