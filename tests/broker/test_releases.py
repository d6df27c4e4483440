"""Releases are named as Kafka names them, compared by age, and refused in one sentence."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from broker.cli import kafka_option
from broker.errors import UsageError
from broker.releases import KNOWN, NEWEST, Release


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("4.1", "4.1"),
        ("4.1.2", "4.1"),
        ("0.10.2", "0.10.2"),
        ("0.10.2.1", "0.10.2"),
        ("0.11.0.3", "0.11"),
        ("3.9", "3.9"),
    ],
)
def test_a_patch_number_is_dropped(text: str, name: str) -> None:
    assert str(Release(text)) == name


@pytest.mark.parametrize("text", ["", "4", "4.9", "44.1", "0.9.0", "4.3-SNAPSHOT", "4.1.", " 4.1", "\u0664.1", "4.1\n"])
def test_any_other_name_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"of Kafka is not known; allowed are 0\.10\.2 to 4\.4"):
        Release(text)


def test_releases_sort_by_age_and_not_by_letters() -> None:
    assert [str(one) for one in sorted(map(Release, reversed(KNOWN)))] == list(KNOWN)
    assert Release("0.10.2") < Release("0.11") < Release("2.8") < NEWEST


def test_the_option_passes_a_release_and_its_default_is_the_newest() -> None:
    @click.command()
    @kafka_option()
    def show(release: Release) -> None:
        click.echo(repr(release))

    run = CliRunner().invoke
    assert run(show, []).output == "Release(name='4.3')\n"
    assert run(show, ["--kafka", "4.0.1"]).output == "Release(name='4.0')\n"
    refused = run(show, ["--kafka", "5"])
    assert (refused.exit_code, "release '5' of Kafka is not known" in refused.output) == (2, True)
