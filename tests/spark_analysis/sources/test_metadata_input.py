"""A metadata log as the input of a report: how it is recognised, its moments, and what is put aside."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from broker.cluster import BrokerView, ClusterView
from broker.errors import InputError, NothingUsableError, UsageError
from broker.ids import BrokerId, Offset
from broker.units import TimeMs
from log.metadata import END, FORMAT, Moment
from spark_analysis.sources.dumps import Moments, is_metadata, read_input, size_bytes
from spark_analysis.sources.inputs import check_inputs, dump_inputs, moment
from tests.log.metadata.made import REAL, REAL_LOG, broker, fenced, log_file
from tests.log.samples import write_sample

SEGMENT = REAL_LOG / "00000000000000000000.log"
SNAPSHOT = REAL_LOG / "00000000000000000208-0000000001.checkpoint"
BY_BROKERS = Moments(by_brokers=True)


def test_a_directory_a_segment_and_a_snapshot_are_recognised_by_what_they_hold(tmp_path: Path) -> None:
    copied = tmp_path / "prod"
    shutil.copy(SNAPSHOT, copied)
    for path in (REAL_LOG, REAL, SEGMENT, SNAPSHOT, copied):
        assert is_metadata(str(path))
        dump = read_input(str(path), name="prod")
        (view,) = dump.clusters
        assert (dump.format, view.name, view.racks) == (FORMAT, "prod", ("east", "north", "west"))
    assert not is_metadata(str(REAL / "describe" / "6-end.txt"))
    assert size_bytes(str(REAL)) == sum(path.stat().st_size for path in REAL_LOG.iterdir())


def test_records_that_cannot_be_used_are_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(bytes(log_file((broker(1),), (fenced(2),)).data))
    dump = read_input(str(path))
    assert (dump.rows_analysed, dump.rows_rejected) == (2, 1)
    assert dump.rejects[0].reason == (
        "offset 1: BROKER_REGISTRATION_CHANGE_RECORD: Tried to change broker 2, but that broker was not registered."
    )
    assert dump.notes == (
        "the unfenced brokers and their racks are uncertain: 1 record that may decide them was left out",
    )


def test_the_segment_of_another_topic_holds_nothing_that_can_be_used(tmp_path: Path) -> None:
    write_sample("none", tmp_path)
    path = min(tmp_path.rglob("*.log"))
    with pytest.raises(NothingUsableError, match="nothing can be used: offset 0: "):
        read_input(str(path))


def test_moments_are_named_by_offset_time_and_what_changed() -> None:
    at = (Moment(offset=Offset(126)), Moment(time_ms=TimeMs(1795285803936)), END)
    views = read_input(str(REAL_LOG), name="c", moments=Moments(at=at)).clusters
    assert [view.name for view in views] == [
        "c at offset 126, 2026-11-21T18:29:20.947Z (3 brokers live, broker 3 fenced)",
        "c at offset 178, 2026-11-21T18:30:03.036Z (broker 4 fenced, broker 3 back)",
        "c at offset 234, 2026-11-21T18:30:49.039Z (broker 4 back)",
    ]
    assert [[each.id for each in view.brokers if each.fenced] for view in views] == [[3], [4], []]
    assert len(read_input(str(REAL_LOG), name="c", moments=BY_BROKERS).clusters) == 7


def test_two_moments_of_one_millisecond_are_told_apart_and_one_is_shown_once() -> None:
    """A millisecond has several records: neighbours differ by their offset at least."""
    at = tuple(Moment(offset=Offset(offset)) for offset in (100, 101, 102, 102))
    names = [view.name for view in read_input(str(REAL_LOG), name="c", moments=Moments(at=at)).clusters]
    assert len(set(names)) == len(names) == 3


def cluster(*brokers: int, fenced: tuple[int, ...] = ()) -> ClusterView:
    views = tuple(BrokerView(id=BrokerId(one), fenced=one in fenced) for one in brokers)
    return ClusterView(name="c", source="s", format="f", brokers=views)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", Moment(offset=Offset(0))),
        ("123", Moment(offset=Offset(123))),
        ("1970-01-01", Moment(time_ms=TimeMs(0))),
        ("1970-01-01T00:01", Moment(time_ms=TimeMs(60_000))),
        ("1970-01-01T00:00:01.5Z", Moment(time_ms=TimeMs(1500))),
    ],
)
def test_a_moment_is_an_offset_or_a_time(text: str, expected: Moment) -> None:
    assert moment(text) == expected


@pytest.mark.parametrize("text", ["", "-1", "soon", "2026-13-01", "1" * 30, "1970-01-01T00:00:00+01:00"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as refusal:
        moment(text)
    assert str(refusal.value) == (
        f"--at is {text!r}; it is an offset, or a time of UTC such as 2026-11-21T18:30:00.000Z"
    )


def test_a_directory_without_a_log_is_said_before_spark_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no segment and no snapshot of a metadata log"):
        check_inputs(dump_inputs((str(tmp_path),), None, None))
    check_inputs(dump_inputs((str(REAL_LOG),), None, True))
