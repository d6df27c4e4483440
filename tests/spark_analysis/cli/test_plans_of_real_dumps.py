"""Plans of every real dump for every goal pass their own check: 600 folders, each made and checked by the commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside
from tests.spark_analysis.cli.test_plan import KRAFT

pytestmark = pytest.mark.deep

REAL: Final = Path(__file__).parents[2] / "real_data"
DUMPS: Final = (
    *sorted(str(path) for folder in ("kraft", "kraft-4.3") for path in (REAL / folder / "describe").glob("*.txt")),
    *sorted(str(path) for path in (REAL / "multiregion").glob("*.txt")),
    *sorted(str(path) for path in (REAL / "reported").iterdir() if path.suffix in (".txt", ".json")),
    str(REAL / "kraft" / "__cluster_metadata-0"),
    KRAFT,
)
GOALS: Final = {  # With the dumps that have such a plan, at least; others are refused.
    "": 45,
    "--only-leaders": 45,
    "--per-topic": 45,
    "--batches 3": 45,
    "--goal racks": 8,
    "--goal add --add 77:a": 45,
    "--goal drain --remove 3": 8,
    "--goal factor --factor 2": 30,
    "--goal factor --factor 3": 30,
    "--remove 1": 9,
}


def observed(dump: str) -> list[str]:
    """Return options that leave out the topics with observers, of which nothing is planned."""
    if "multiregion" not in dump:
        return []
    topics = re.findall(r"Topic: (\S+)\s+Partition: .*Observers: *\d", Path(dump).read_text())
    racks = ["--racks", str(REAL / "multiregion-racks.csv")]
    return racks + [word for topic in sorted(set(topics)) for word in ("--exclude-topic", topic)]


@pytest.mark.parametrize("goal", GOALS)
def test_plans_of_real_dumps_are_right(goal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = 0
    for place, dump in enumerate(DUMPS):
        out = str(tmp_path / str(place))
        given = [dump, *goal.split(), "--partial", "--min-isr", "1", *observed(dump), "--out", out]
        status = run(brokerside, "brokerside", ["plan", *given])
        assert status in (0, 1, 2), dump
        if status == 0:
            made += 1
            capsys.readouterr()
            assert run(brokerside, "brokerside", ["plan", "--check", out]) == 0, (dump, capsys.readouterr().err)
    assert made >= GOALS[goal]
