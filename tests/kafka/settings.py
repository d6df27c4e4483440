"""Print all settings that Kafka's released classes define, of each release, as one table.

    python -m tests.kafka.settings OUT

A row says of which releases it holds; a setting has a second row where a release changed it. The table in
tests/broker/kafka_settings.tsv is the output of this program, and `tests.broker.test_config` compares ours with it.

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

from broker.releases import Release
from tests.kafka.jvm import KafkaUnavailableError, java_command
from tests.kafka.releases import VERSIONS

EMPTY: Final = "-"
"""What the table shows for an empty cell, so that no line ends with a tab."""

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


def render(settings: Mapping[Release, Sequence[KafkaSetting]]) -> str:
    """Return the table of several releases: one row for each form of a setting, with the releases that have it."""
    releases_of: dict[KafkaSetting, list[Release]] = {}
    for release in sorted(settings):
        for setting in settings[release]:
            releases_of.setdefault(setting, []).append(release)
    rows = sorted(releases_of.items(), key=lambda item: (item[0].scope, item[0].name, item[1]))
    versions = ", ".join(VERSIONS[release] for release in sorted(settings))
    lines = [
        f"# Printed by python -m tests.kafka.settings from Kafka {versions}",
        "\t".join(("releases", *COLUMNS)),
    ]
    lines += ["\t".join((" ".join(map(str, held)), *map(_cell, attrs.astuple(setting)))) for setting, held in rows]
    return "\n".join(lines) + "\n"


def read(text: str) -> dict[Release, dict[tuple[str, str], KafkaSetting]]:
    """Return the settings of each release by scope and name, from a table that `render` made."""
    settings: dict[Release, dict[tuple[str, str], KafkaSetting]] = {}
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines[0].split("\t") == ["releases", *COLUMNS], lines[0]
    for line in lines[1:]:
        releases, *cells = line.split("\t")
        setting = KafkaSetting(*("" if cell == EMPTY else cell for cell in cells))
        for release in releases.split(" "):
            settings.setdefault(Release(release), {})[setting.scope, setting.name] = setting
    return dict(sorted(settings.items()))


def _cell(text: str) -> str:
    return text or EMPTY


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
    options.out.write_text(render(settings), "utf-8")
    for release, held in settings.items():
        print(f"Kafka {VERSIONS[release]}: {len(held)} settings")
    return 0


if __name__ == "__main__":
    sys.exit(main())
