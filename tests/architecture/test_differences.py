"""The table of what differs between releases has each place in the code that compares one, and is printed."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from broker.__main__ import cli
from broker.config.catalog import changes_of, rows
from broker.config.setting import Scope
from broker.differences import DIFFERENCES
from broker.releases import Release
from replication.rules.switches import NEVER, SWITCHES
from tests.architecture.house import PACKAGES, ROOT

COMPARES = re.compile(r"\brelease (?:<|>|<=|>=) [A-Z]")
"""A release compared with a named one; the switches of replication keep theirs in a table."""

OLDER = frozenset(
    {
        "broker/config/settings.py",
        "log/cli/dump.py",
        "placement/consumer/registry.py",
        "replication/groups/alone/cli.py",
    }
)
"""Files that refuse a release, or look a setting up in it, and have no rule of their own."""


def compared() -> set[str]:
    return {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if COMPARES.search(path.read_text("utf-8"))
    }


def test_every_file_that_compares_a_release_has_a_row() -> None:
    assert len(compared()) > 8
    assert compared() - OLDER - {row.where for row in DIFFERENCES} == set()


def test_every_row_names_a_file_that_knows_releases() -> None:
    for row in DIFFERENCES:
        text = (ROOT / row.where).read_text("utf-8")
        assert "release" in text, row.where
    assert list(DIFFERENCES) == sorted(DIFFERENCES, key=lambda row: row.since)


@pytest.mark.parametrize("name", SWITCHES)
def test_every_switch_since_3_9_has_a_row_of_its_release(name: str) -> None:
    since = SWITCHES[name].since
    rows = [row for row in DIFFERENCES if f"`{name}`" in row.what]
    if since in (NEVER, "0.8") or Release(since) <= Release("3.9"):
        assert rows == []
    else:
        assert [row.since for row in rows] == [Release(since)]


def test_every_release_that_changes_a_setting_has_a_row() -> None:
    listed = {row.since for row in DIFFERENCES if row.where == "broker/config/catalog.py"}
    kept = [row for row in rows() if not row.left_out]
    assert {change.before for row in kept for change in changes_of(row.name, Scope(row.scope))} == listed


def test_the_command_prints_the_table() -> None:
    done = CliRunner().invoke(cli, ["differences"])
    assert len(done.output.splitlines()) == len(DIFFERENCES)
    assert (
        "4.2  A known consumer that joins with epoch 0 is not fenced (GroupMetadataManager); groups simulate"
        in done.output
    )
