"""Placers by name, Kafka's and other packages'."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest

from broker.cluster import BrokerView
from broker.entropy import JavaRandom, RandomSource
from broker.errors import UsageError
from broker.ids import BrokerId
from placement.cli import TopicRequest, place_topics
from placement.examples.least_loaded import LeastLoadedPlacer
from placement.placers.classic import ClassicPlacer
from placement.placers.registry import PLACER_GROUP, load_placer
from placement.spec import PlacementSpec, rows_placed
from placement.strategies import PlacerFailure, check_placer


def test_the_example_is_offered_as_any_package_would_offer_its_own() -> None:
    assert load_placer("least-loaded") == LeastLoadedPlacer()


def test_no_package_takes_over_the_name_of_kafkas_placer(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("classic", "placement.examples.least_loaded:LeastLoadedPlacer", PLACER_GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point])
    load_placer.cache_clear()
    assert load_placer("classic") == ClassicPlacer()


def test_what_is_no_placer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("odd", "builtins:object", PLACER_GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point])
    with pytest.raises(UsageError) as refusal:
        load_placer("odd")
    assert str(refusal.value) == "placer 'odd' has no method place(spec, brokers, entropy)"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([[1, 2], [2, 1]], "list"),
        (None, "NoneType"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "an array of float64 of shape (2, 2)"),
        (np.array([1, 2], np.int32), "an array of int32 of shape (2,)"),
    ],
)
def test_a_placer_that_answers_no_matrix_is_refused_in_one_sentence(answer: object, said: str) -> None:
    class Odd:
        def place(self, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource) -> Any:
            return answer

    brokers = [BrokerView(id=BrokerId(number)) for number in (1, 2)]
    sentence = f"placer Odd answers {said}; needed is an array of int32 of shape (2, 2)"
    with pytest.raises(UsageError) as refusal:
        place_topics([TopicRequest("t", 2, 2)], brokers, Odd(), seed=1)
    assert str(refusal.value) == sentence
    with pytest.raises(UsageError):
        rows_placed(Odd(), PlacementSpec(0, 2, 2), brokers, JavaRandom(1))
    with pytest.raises(PlacerFailure):
        check_placer(Odd())


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[1, 2], [2, 9]], "partition 1 on broker 9, which is not among the brokers"),
        ([[1, -1], [2, 1]], "partition 0 on broker -1, which is not among the brokers"),
        ([[1, 2], [2, 2]], "partition 1 on broker 2 twice"),
        ([[1, 2], [2, 1 + 2**32]], "partition 1 on broker 4294967297, which is not among the brokers"),
    ],
)
def test_a_placer_that_names_no_such_broker_is_refused_in_one_sentence(rows: list[list[int]], said: str) -> None:
    class Odd:
        def place(self, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource) -> Any:
            return np.array(rows, dtype=np.int64)

    brokers = [BrokerView(id=BrokerId(number)) for number in (1, 2)]
    with pytest.raises(UsageError) as refusal:
        rows_placed(Odd(), PlacementSpec(0, 2, 2), brokers, JavaRandom(1))
    assert str(refusal.value) == f"placer Odd puts {said}"
