"""The public surface is the one that was written down; who changes it writes it down anew."""

from __future__ import annotations

import importlib

import pytest

from tests.architecture.house import PACKAGES
from tests.architecture.public_api import HEADING, SNAPSHOT, describe, public_modules, render_module


def written(package: str) -> str:
    sections = SNAPSHOT.read_text(encoding="utf-8").removeprefix(HEADING).split("\n\n")
    found = [section.strip() for section in sections if section.strip().startswith(f"[{package}]")]
    return "".join(found)


# Some modules of spark_analysis load Spark; the other tiers never do.
MODULES = [
    pytest.param(name, marks=[pytest.mark.spark] if name.startswith("spark_analysis.") else [])
    for name in public_modules()
]


@pytest.mark.parametrize("module", MODULES)
def test_names_and_signatures_are_those_written_down(module: str) -> None:
    assert render_module(module).strip() == written(module), "after a wanted change: python -m tests.architecture"


def test_nothing_is_written_down_that_is_not_public() -> None:
    sections = SNAPSHOT.read_text(encoding="utf-8").removeprefix(HEADING).split("\n\n")
    assert [section.split()[0] for section in sections] == [f"[{name}]" for name in public_modules()]


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_listed_is_there_once(package: str) -> None:
    names = importlib.import_module(package).__all__
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(importlib.import_module(package), name)] == []


def lines_of(package: str, name: str) -> list[str]:
    return describe(name, getattr(importlib.import_module(package), name))


def test_a_changed_signature_shows() -> None:
    assert "    ManualClock(now_ms: TimeMs = 0) -> None" in lines_of("broker.clock", "ManualClock")
    assert "    def advance(self, duration_ms: DurationMs) -> TimeMs" in lines_of("broker.clock", "ManualClock")
    assert "enum Scope: BROKER, TOPIC, GROUP" in lines_of("broker.config", "Scope")
    assert "def find(name: str, release: Release = Release(name=4.4)) -> tuple[Setting, ...]" in lines_of(
        "broker.config", "find"
    )
