"""Every table of kafka-consumer-groups --describe is read, and each row is analysed or rejected with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import InputError
from placement.formats.group_tables import GroupTables, read_group_tables

PRINTED = Path(__file__).parent / "printed"
FORMS = ("members", "members-verbose", "offsets", "offsets-verbose", "no-members", "state", "state-verbose")


def printed(form: str) -> str:
    return (PRINTED / f"groups-{form}.txt").read_text()


def rows_of(text: str) -> list[str]:
    """Return the rows as a person counts them: lines that are neither blank nor a heading."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith("GROUP ")]


def counts(tables: GroupTables) -> tuple[int, int, int]:
    return len(tables.members), len(tables.offsets), len(tables.states)


@pytest.mark.parametrize("form", FORMS)
def test_each_row_of_what_the_tool_prints_is_read(form: str) -> None:
    tables = read_group_tables(printed(form), source=form)
    place = ("members", "offsets", "state").index(form.split("-")[0] if form != "no-members" else "offsets")
    found = counts(tables)
    assert found[place] == len(rows_of(printed(form)))
    assert sum(found) == found[place] == tables.account.rows_in
    assert tables.rejects == ()


def test_offsets_say_where_a_group_is_and_who_reads() -> None:
    rows = {
        (row.group, row.topic, row.partition): row for row in read_group_tables(printed("offsets"), source="o").offsets
    }
    row = rows["new-protocol", "orders", 3]
    assert (row.current_offset, row.log_end_offset, row.lag) == (355, 545, 190)
    assert (row.member_id, row.host, row.client_id) == ("slGrnCH7TGKtqd6a9JACbg", "127.0.0.1", "n-1")
    nobody = read_group_tables(printed("no-members"), source="n").offsets[0]
    assert (nobody.member_id, nobody.host, nobody.client_id, nobody.lag) == (None, None, None, 0)


def test_states_name_the_assignor_and_the_coordinator() -> None:
    rows = {row.group: row for row in read_group_tables(printed("state-verbose"), source="s").states}
    assert (rows["billing group"].assignor, rows["billing group"].member_count) == ("range", 2)
    assert (rows["new-protocol"].group_epoch, rows["new-protocol"].target_epoch) == (3, 3)
    assert (rows["nightly"].assignor, rows["nightly"].state, rows["nightly"].group_epoch) == (None, "Empty", None)
    assert rows["nightly"].coordinator == "127.0.0.1:29093  (3)"


@pytest.mark.parametrize(
    ("form", "before", "after", "reason"),
    [
        ("offsets", "0          250 ", "x          250 ", "'x' is no partition number; allowed are 0 to "),
        (
            "offsets",
            "250             250             0 ",
            "2x0             250             0 ",
            "CURRENT-OFFSET is '2x0'",
        ),
        ("offsets", "eu-west-1.payments 0 ", "eu-west-1,payments 0 ", "illegal topic name"),
        ("offsets", "eu-west-1.payments 1 ", "eu-west-1.payments 0 ", "was listed before"),
        ("offsets", "billing group   eu", "billing group xyeu", "do not stand under their headings"),
        ("state", "Stable               2", "Stable               -", "#MEMBERS is not known"),
        ("state", "new-protocol    127", "billing group   127", "the group was listed before"),
        ("members", "/127.0.0.1      b-1", "/127.0.0.12345678b-1", "do not stand under their headings"),
    ],
)
def test_a_row_that_cannot_be_used_is_rejected_with_its_line(form: str, before: str, after: str, reason: str) -> None:
    text = printed(form)
    assert before in text
    place = text.index(before)
    tables = read_group_tables(text.replace(before, after, 1), source="damaged")
    (_, reject), *more = tables.rejects
    assert not more
    assert reason in reject.reason
    assert reject.line == text[:place].count("\n") + 1
    assert tables.account.rows_in == len(rows_of(text)) == tables.account.rows_analysed + 1


@given(st.sampled_from(FORMS), st.data())
def test_no_row_is_lost_whatever_is_damaged(form: str, data: st.DataObject) -> None:
    lines = printed(form).splitlines()
    places = [place for place, line in enumerate(lines) if line.strip() and not line.startswith("GROUP ")]
    place = data.draw(st.sampled_from(places))
    at = data.draw(st.integers(0, len(lines[place]) - 1))
    lines[place] = lines[place][:at] + data.draw(st.sampled_from("x -,é:9")) + lines[place][at + 1 :]
    assert lines[place].strip()
    tables = read_group_tables("\n".join(lines), source="damaged")
    assert sum(counts(tables)) + len(tables.rejects) == len(places)
    assert all(reject.line == place + 1 for _, reject in tables.rejects[:1])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("orders\nbilling\n", "this is not what kafka-consumer-groups --describe prints"),
        ("", "this is not what kafka-consumer-groups --describe prints"),
        ("orders:0:17\norders:1:3\n", "this is what kafka-get-offsets prints, and not what kafka-consumer-groups"),
        ("GROUP TOPIC PARTITION START-OFFSET LAG\n", "f:1: this is not what kafka-consumer-groups --describe"),
    ],
)
def test_another_text_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        read_group_tables(text, source="f")
    assert sentence in str(caught.value)


def test_a_group_without_members_alone_is_no_error() -> None:
    tables = read_group_tables("Consumer group 'nightly' has no active members.\n", source="f")
    assert counts(tables) == (0, 0, 0)
    assert tables.account.rows_in == 0
