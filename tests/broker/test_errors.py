"""Errors say whose fault it is, where, and which value; Kafka's refusals name Kafka's class."""

from __future__ import annotations

import inspect

import pytest

from broker import errors
from broker.errors import BrokersideError, CorruptDataError, InputError, RefusedError, UsageError, shorten

CLASSES = [value for _, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, BrokersideError)]
REFUSALS = [value for value in CLASSES if issubclass(value, RefusedError)]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.__name__)
def test_every_refusal_names_the_class_that_kafka_throws(refusal: type[RefusedError]) -> None:
    assert refusal.kafka_class.startswith(("org.apache.kafka.", "java.lang."))
    assert refusal is RefusedError or refusal.kafka_class != RefusedError.kafka_class


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "no brokers"),
        ({"source": "a.txt"}, "a.txt: no brokers"),
        ({"line": 3}, "line 3: no brokers"),
        ({"source": "a.txt", "line": 3}, "a.txt:3: no brokers"),
        ({"source": "a.txt", "line": 3, "value": "x\ny"}, "a.txt:3: no brokers (found 'x\\ny')"),
        ({"value": ""}, "no brokers (found '')"),
    ],
)
def test_an_input_error_says_what_where_and_which_value(fields: dict[str, object], message: str) -> None:
    error = InputError("no brokers", **fields)  # type: ignore[arg-type] # the fields of each case.
    assert str(error) == message
    assert isinstance(error, UsageError)
    assert (error.what, error.source, error.line) == ("no brokers", fields.get("source", ""), fields.get("line"))


def test_an_input_error_keeps_the_whole_value_and_shows_its_beginning() -> None:
    error = InputError("too long", value="x" * 1000)
    assert error.value == "x" * 1000
    assert str(error) == f"too long (found '{'x' * 79}…')"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "wrong checksum"),
        ({"source": "0.log"}, "0.log: wrong checksum"),
        ({"source": "0.log", "position": 61}, "0.log at byte 61: wrong checksum"),
    ],
)
def test_damage_is_told_with_its_byte(fields: dict[str, object], message: str) -> None:
    error = CorruptDataError("wrong checksum", **fields)  # type: ignore[arg-type] # the fields of each case.
    assert str(error) == message
    assert error.position == fields.get("position")


@pytest.mark.parametrize(("text", "shown"), [("", ""), ("x" * 80, "x" * 80), ("x" * 81, "x" * 79 + "…")])
def test_a_long_text_is_cut_and_says_so(text: str, shown: str) -> None:
    assert shorten(text) == shown
