"""Power loss at any moment of short programs, a share of the disks it may leave; all of them with `-m deep`."""

from __future__ import annotations

import attrs
import pytest

from tests.log.crash.programs import PROGRAMS, check_loss, pairs, run, sweep, sweep_steps
from tests.support.disk_image import DiskImage

STRIDE = 97
RECOVERY_POINTS = "recovery-point-offset-checkpoint"


@pytest.mark.parametrize("name", list(PROGRAMS)[::4])
def test_power_loss_leaves_whole_batches_and_all_that_was_flushed(name: str) -> None:
    assert sweep(name, stride=STRIDE).state_count > 0


@pytest.mark.deep
@pytest.mark.parametrize("steps", [*PROGRAMS.values(), *pairs()], ids=", ".join)
def test_every_power_loss_of_a_program_leaves_whole_batches_and_all_that_was_flushed(steps: tuple[str, ...]) -> None:
    assert sweep_steps(steps).state_count > 0


def test_few_operations_that_are_not_synced_are_lost_in_every_way() -> None:
    append = sweep("append and flush")
    assert (append.state_count, append.sampled_count, append.gap_count) == (60, 0, 0)


def test_a_lost_flushed_record_is_found() -> None:
    crashed = run(PROGRAMS["append and flush"])
    last, image, _ = list(crashed.losses())[-1]
    check_loss(crashed, last, image)
    active = "events-0/00000000000000000004.log"
    cut = DiskImage({**image.files, active: image.files[active][:99]}, image.directories)
    with pytest.raises(AssertionError):
        check_loss(crashed, last, cut)


def test_a_checkpoint_that_is_not_whole_is_found() -> None:
    crashed = run(PROGRAMS["append"])
    image = next(image for _, image, _ in crashed.losses())
    torn = attrs.evolve(image, files={**image.files, RECOVERY_POINTS: b"0\n1\nevents 0 x\n"})
    with pytest.raises(AssertionError, match="recovery-point"):
        check_loss(crashed, 0, torn)
