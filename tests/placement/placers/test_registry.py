"""Placers by name, Kafka's and other packages'."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from broker.errors import UsageError
from placement.examples.least_loaded import LeastLoadedPlacer
from placement.placers.classic import ClassicPlacer
from placement.placers.registry import PLACER_GROUP, load_placer


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
