"""The decoders of internal topics, and control records, against what kafka-dump-log of 4.3.1 printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.errors import CorruptDataError
from broker.ids import Offset
from broker.units import TimeMs
from log import Record
from log.storage import FileStorage
from log.tools.dump_options import DumpOptions
from log.tools.dump_text import file_lines
from log.tools.dump_topics import TOPIC_DECODERS, decoded
from log.tools.problems import Problems
from log.tools.sources import SourceFile
from tests.log.cli.test_commands import answer
from tests.log.metadata.made import REAL_LOG, REAL_NEWEST

DUMPED = REAL_NEWEST / "internal_topics"
NAME = "00000000000000000000.log"


def lines(path: Path, options: DumpOptions) -> list[str]:
    file = SourceFile(FileStorage(path.parent, read_only=True), path.name, str(path))
    return list(file_lines(file, options, Problems()))[1:]


@pytest.mark.parametrize("decoder", TOPIC_DECODERS)
def test_random_records_of_all_types_are_dumped_as_kafka_dumped_them(decoder: str) -> None:
    """The records are of Kafka's own classes at random, one in three damaged; the text is what its tool printed."""
    found = lines(DUMPED / decoder / NAME, DumpOptions(deep=True, print_data=True, topic_decoder=decoder))
    expected = (DUMPED / decoder / "dumped.txt").read_text(encoding="utf-8")
    assert "\n".join(found) + "\n" == expected
    assert expected.count("skipping") > 10


def test_the_options_of_the_command_are_those_of_kafkas_tool() -> None:
    for decoder in TOPIC_DECODERS:
        found = answer("dump", f"--{decoder}-decoder", DUMPED / decoder / NAME)
        assert sum(" payload: " in line or " key: " in line for line in found.lines) > 100
    both = answer("dump", "--offsets-decoder", "--transaction-log-decoder", DUMPED / "offsets" / NAME)
    assert both.status == 2
    assert "name one decoder, not several" in both.err


def test_a_record_without_a_key_ends_the_dump() -> None:
    with pytest.raises(CorruptDataError, match="at offset 7 using the specified decoder"):
        decoded(Record(Offset(7), TimeMs(0), None, b""), "offsets")


def test_a_leader_change_is_printed_with_its_fields() -> None:
    found = lines(REAL_LOG / NAME, DumpOptions(deep=True))
    shown = 'LeaderChange: {"version":0,"leaderId":100,"voters":[{"voterId":100}],'
    assert any(shown in line for line in found)
