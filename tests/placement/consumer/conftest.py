"""What the tests of `brokerside groups assign` share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from broker.cli import run
from replication.groups.cli import groups


@pytest.fixture
def typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `groups assign` on a file, a text or a JSON value, and on what was held if that is given."""

    def run_it(given: object, *arguments: str, before: object = None) -> tuple[int, str, str]:
        extra = [] if before is None else ["--previous", str(written("before.json", before))]
        path = (
            given
            if isinstance(given, Path)
            else written("members.txt" if isinstance(given, str) else "group.json", given)
        )
        status = run(groups, "groups", ["assign", str(path), *arguments, *extra])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    def written(name: str, value: object) -> Path:
        path = tmp_path / name
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return path

    return run_it
