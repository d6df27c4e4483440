"""Open bugs of public clients are reproduced by one seed; the same program without the cause recovers."""

from __future__ import annotations

import functools

from replication.testing import run_virtual
from replication.testing.client_bugs import BUGS, expired_batches_take_sequence_numbers


def test_an_idempotent_aiokafka_producer_never_recovers_from_expired_batches() -> None:
    found = BUGS[0].run()
    assert found["before"] == ["", ""]
    assert all(found["away"])
    assert found["after"] == ["OutOfOrderSequenceNumber"] * 5


def test_the_same_producer_without_idempotence_recovers() -> None:
    program = functools.partial(expired_batches_take_sequence_numbers, is_idempotent=False)
    found = run_virtual(program, seed=1, topics={"orders": 1}, factor=1)
    assert all(found["away"])
    assert found["after"] == [""] * 5
