"""Print all settings that Kafka's released classes define, of each release, as one table.

    python -m tests.kafka.settings OUT

A row says of which releases it holds; a setting has a second row where a release changed it. The first eleven columns
of broker/config/settings.tsv are the output of this program; the others are ours and are kept.

Ends with status 2 where Kafka's classes cannot be run.

Source: AbstractKafkaConfig, LogConfig, GroupConfig, DynamicBrokerConfig and ServerTopicConfigSynonyms of each release,
as java/ConfigDefs.java prints them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from broker.config.catalog import COLUMNS as ROW_COLUMNS
from broker.config.catalog import EMPTY, Row, rows
from broker.releases import Release
from tests.kafka.jvm import KafkaUnavailableError, java_command
from tests.kafka.releases import VERSIONS

PRINT_SECONDS_MAX: Final = 120


@attrs.frozen
class KafkaSetting:
    """One setting as a release's ConfigDef prints it; every field is text, empty where Kafka says nothing."""

    scope: str
    name: str
    type: str
    default: str
    validator: str
    lists: str
    internal: str
    deprecated: str
    update: str
    synonyms: str


COLUMNS: Final = tuple(field.name for field in attrs.fields(KafkaSetting))
OURS: Final = ROW_COLUMNS[len(COLUMNS) + 1 :]
"""The columns that Kafka does not print."""


def printed(build_directory: Path, release: Release) -> list[KafkaSetting]:
    """Return what a release's classes print; raise KafkaUnavailableError where they cannot be run."""
    done = subprocess.run(
        [*java_command(build_directory, release), "ConfigDefs"],
        capture_output=True,
        text=True,
        timeout=PRINT_SECONDS_MAX,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return [KafkaSetting(*line.split("\t")) for line in done.stdout.splitlines()]


def printed_settings(rows: Sequence[Row]) -> dict[Release, dict[tuple[str, str], KafkaSetting]]:
    """Return the settings of each release by scope and name, as the rows of the table say that Kafka prints them."""
    settings: dict[Release, dict[tuple[str, str], KafkaSetting]] = {}
    for row in rows:
        setting = KafkaSetting(*(getattr(row, column) for column in COLUMNS))
        if row.scope == "group":
            setting = attrs.evolve(setting, synonyms="")  # Kafka has no list of these; the table's are ours.
        for release in row.releases.split(" "):
            settings.setdefault(Release(release), {})[row.scope, row.name] = setting
    return dict(sorted(settings.items()))


def render(settings: Mapping[Release, Sequence[KafkaSetting]], known: Sequence[Row]) -> str:
    """Return the table of several releases: `known` with Kafka's columns anew, and new settings at the end.

    A row stands for one form of a setting; our own columns are kept, and empty in a form that was not known.
    """
    forms: dict[tuple[str, str], dict[KafkaSetting, list[Release]]] = {}
    for release in sorted(settings):
        for setting in settings[release]:
            forms.setdefault((setting.scope, setting.name), {}).setdefault(setting, []).append(release)
    ours = {_key(row): row for row in known}
    order = list(dict.fromkeys([(row.scope, row.name) for row in known])) + sorted(forms)
    lines = []
    for name in dict.fromkeys(order):
        for setting, held in sorted(forms.pop(name, {}).items(), key=lambda item: item[1]):
            empty = Row(releases=" ".join(map(str, held)), **attrs.asdict(setting), **dict.fromkeys(OURS, ""))
            row = ours.get(_key(empty), empty)
            row = attrs.evolve(row, releases=empty.releases)
            lines.append("\t".join(cell or EMPTY for cell in attrs.astuple(row)))
    versions = ", ".join(VERSIONS[release] for release in sorted(settings))
    head = f"# Printed by python -m tests.kafka.settings from Kafka {versions}; columns after synonyms are ours"
    return "\n".join([head, "\t".join(ROW_COLUMNS), *lines]) + "\n"


def _key(row: Row) -> tuple[str, ...]:
    """Return what Kafka prints in a row; of a group's setting without synonyms, which Kafka does not print."""
    cells = [getattr(row, column) for column in COLUMNS]
    return tuple(cells[:-1] if row.scope == "group" else cells)


def main() -> int:
    """Write the table of every release into the file that the command line names; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.settings", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT", help="file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as build_directory:
        try:
            settings = {release: printed(Path(build_directory), release) for release in VERSIONS}
        except KafkaUnavailableError as missing:
            print(f"Kafka's own classes cannot be run here: {missing}", file=sys.stderr)
            return 2
    options.out.write_text(render(settings, rows()), "utf-8")
    for release, held in settings.items():
        print(f"Kafka {VERSIONS[release]}: {len(held)} settings")
    return 0


if __name__ == "__main__":
    sys.exit(main())
