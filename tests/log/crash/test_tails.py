"""Torn and rotten tails, a share of each kind of damage for every shape of batch; all of them with `-m deep`.

The share moves from shape to shape, so that together they touch every part of a batch.
"""

from __future__ import annotations

from collections import Counter

import pytest

from log.codecs.compression import Codec
from tests.log.crash.shapes import LOG_PATH, SHAPES, written
from tests.log.crash.tails import DAMAGES, Damage, bit_flips, check, sweep

LEADER_EPOCH_BIT = 8 * 15  # No checksum covers the leader epoch of a batch.
STRIDES = {"cut": 41, "zeros": 79, "stale blocks": 79, "bit flip": 83}


@pytest.mark.parametrize("kind", DAMAGES)
def test_recovery_leaves_all_whole_appends_before_the_damage(kind: str) -> None:
    outcomes: Counter[str] = Counter()
    for number, (shape, codec) in enumerate(SHAPES[::3]):
        outcomes += sweep(written(shape, codec), kind, stride=7 * STRIDES[kind], first=number)
    assert outcomes["cut"] > 0


@pytest.mark.deep
@pytest.mark.parametrize("kind", DAMAGES)
def test_recovery_leaves_all_whole_appends_before_any_damage(kind: str) -> None:
    for shape, codec in SHAPES:
        assert sweep(written(shape, codec), kind).total() > 0, (shape, codec)


@pytest.mark.deep
def test_every_cut_of_a_transactional_tail_is_recovered() -> None:
    assert sweep(written("transactional", Codec.NONE), "cut") == {"cut": 425, "kept": 5}


def test_a_log_that_lost_nothing_is_left_as_it_was() -> None:
    log = written("idempotent", Codec.LZ4)
    assert check(log, Damage("none", log.data)) == "kept"


def test_a_damaged_batch_that_would_be_kept_is_found() -> None:
    log = written("plain", Codec.NONE)
    unseen = next(damage for damage in bit_flips(log) if damage.name == f"bit {LEADER_EPOCH_BIT} flipped")
    assert check(log, unseen) == "kept"
    with pytest.raises(AssertionError):
        check(log, Damage(unseen.name, unseen.data))
    assert log.image.files[LOG_PATH] == log.data


def test_the_shapes_are_what_they_are_called() -> None:
    transactional = written("transactional", Codec.ZSTD)
    assert len(transactional.stages[-1].aborted) == 2
    assert transactional.stages[2].last_stable_offset == 0
    assert written("idempotent", Codec.NONE).stages[-1].producers[0].last_sequence == 7
    assert written("magic 1", Codec.GZIP).stages[-1].epochs == ()
    assert len({entry.epoch for entry in written("plain", Codec.NONE).stages[-1].epochs or ()}) == 2
    assert len(SHAPES) == 38
