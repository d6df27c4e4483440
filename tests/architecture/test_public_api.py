"""The public surface is the one that was written down; who changes it writes it down anew."""

from __future__ import annotations

import importlib

import pytest

from tests.architecture.house import PACKAGES
from tests.architecture.public_api import HEADING, SNAPSHOT, describe, render_package


def written(package: str) -> str:
    sections = SNAPSHOT.read_text(encoding="utf-8").removeprefix(HEADING).split("\n\n")
    (found,) = [section.strip() for section in sections if section.strip().startswith(f"[{package}]")]
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_names_and_signatures_are_those_written_down(package: str) -> None:
    assert render_package(package).strip() == written(package), "after a wanted change: python -m tests.architecture"


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
    assert "def find(name: str) -> tuple[Setting, ...]" in lines_of("broker.config", "find")
