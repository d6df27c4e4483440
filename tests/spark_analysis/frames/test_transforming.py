"""Every question can be asked directly and in `DataFrame.transform`, and logs the keys that it takes by default."""

from __future__ import annotations

import inspect
import logging
from importlib import import_module
from typing import Any

import pytest

from broker.errors import UsageError
from spark_analysis.frames.inputs import by_default
from tests.spark_analysis.answer_columns import answers

NEEDED: dict[str, Any] = {"assignor": "range", "now_ms": 0, "partitions": object()}
QUESTIONS = sorted(answers())


def asked(name: str) -> tuple[Any, dict[str, Any]]:
    """The question of this name, and what it needs beside its first DataFrame."""
    module, _, function = name.partition(".")
    question = getattr(import_module(f"spark_analysis.questions.{module}"), function)
    _, *others = inspect.signature(question).parameters.values()
    return question, {one.name: NEEDED[one.name] for one in others if one.default is one.empty}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_without_its_dataframe_is_the_function_to_transform_with(name: str) -> None:
    question, needed = asked(name)
    transform = question(**needed)
    given = "no DataFrame"
    with pytest.raises(UsageError) as direct:
        question(given, **needed)
    with pytest.raises(UsageError) as transformed:
        transform(given)
    assert str(direct.value) == str(transformed.value)
    assert str(direct.value).startswith("a DataFrame of ")


def test_keys_taken_by_default_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert by_default("clusters", iter(("cluster", "offset"))) == ("cluster", "offset")
    assert caplog.messages == ["by is not given: clusters are told apart by cluster, offset"]
