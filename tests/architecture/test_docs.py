"""The API reference is built from the docstrings without a warning; `.ci/run` builds all of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture import docs
from tests.architecture.house import ROOT

needs_pdoc = pytest.mark.skipif(not docs.is_possible(), reason="pdoc is not installed; it comes with the extra dev")

# One of each kind that pdoc needs help with: roots, NamedTuples, arrays, and Hypothesis's composite strategies.
SAMPLE = ["broker", "broker.ids", "log", "log.compaction.building", "log.segments.index_file", "log.strategies"]


def test_every_module_has_a_page() -> None:
    names = docs.documented_modules()
    assert {"broker", "placement.placers.striped", "spark_analysis.report.write"} <= set(names)
    assert "spark_analysis.__main__" not in names


@pytest.mark.deep
@needs_pdoc
def test_pages_are_written_without_a_warning(tmp_path: Path) -> None:
    assert docs.build(tmp_path, SAMPLE) == []
    page = (tmp_path / "broker.html").read_text(encoding="utf-8")
    assert 'href="broker/ids.html"' in page
    assert (tmp_path / "log" / "strategies.html").is_file()
    assert "broker.ids" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_wrong_word_is_one_sentence_and_status_2() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.architecture", "pages"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "usage: python -m tests.architecture [surface | docs OUT | words]\n"
