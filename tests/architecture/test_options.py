"""Every option of every command: a number has its limits, and an option that changes nothing is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click
import pytest

from tests.architecture.options import REAL, Command, commands

COMMANDS: Final = {command.name: command for command in commands()}
HUGE: Final = 99_999_999_999_999_999_999

NUMBERS: Final = [
    (command, option)
    for command in COMMANDS.values()
    for option in command.options
    if isinstance(
        option.type, click.types.IntParamType | click.types.FloatParamType | click.IntRange | click.FloatRange
    )
]
SEEDS: Final = {
    "assign": (),
    "groups assign": (),
    "groups herd": ("--consumers", "2", "--partitions", "2"),
    "groups simulate": ("--minutes", "5", "--members", "2", "--protocol", "consumer"),
    "mirror": ("--minutes", "0.1"),
    "requests": ("--load", "1", "--seconds", "1", "--connections", "1"),
    "simulate": ("--minutes", "0.01"),
}
"""The smallest run of each command that has a seed and no Spark."""

MODES: Final = {
    "assign --replica-assignment": ("assign", ("--replica-assignment", "0:1,1:2")),
    "explore --list-rules": ("explore", ("--list-rules",)),
    "explore --table": ("explore", ("--table",)),
    "groups assign --assignor": ("groups assign", ("--assignor", "range")),
    "groups simulate --list-scenarios": ("groups simulate", ("--list-scenarios",)),
    "groups simulate --scenario": ("groups simulate", ("--scenario", "S60")),
    "log recover --out": ("log recover", ("--out", "OUT")),
    "log stats --no-compaction": ("log stats", ("--no-compaction",)),
    "simulate --diagram": ("simulate", ("--diagram", "replica")),
    "simulate --seeds": ("simulate", ("--seeds", "2", "--minutes", "0.01")),
}
"""Options that change what a command does as a whole, so that others may have nothing left to change."""

VALUES: Final = {
    "--assignor": "range",
    "--assume": "draws=128",
    "--conf": "spark.ui.enabled=true",
    "--config": "segment.bytes=1048576",
    "--diagram": "all",
    "--events": str(REAL.parent / "six-brokers.csv"),
    "--from": str(REAL.parent / "six-brokers.csv"),
    "--grow": str(REAL.parent / "six-brokers.csv"),
    "--kafka": "4.1",
    "--topics": str(REAL.parent / "six-brokers.csv"),
    "--load": "3",
    "--minutes": "7",
    "--now-ms": "5",
    "--out": "OUT",
    "--placer": "classic",
    "--placers": "copyset",
    "--previous": str(Path(__file__).with_name("previous.json")),
    "--racks": str(REAL.parent / "multiregion-racks.csv"),
    "--replica-assignment": "1:2",
    "--retention-ms": "1000",
    "--rules": "2.0",
    "--scenario": "S61",
    "--topic": "orders",
    "--without": "strict_min_isr",
}
"""A value of each option that takes one, other than its default; 7 for a number that is not named."""

HARMLESS: Final = {
    "--swarm": "is the default",
    "--full": "adds searches that take minutes",
    "--chart": "writes a file",
    "--quiet": "shows no progress, where there may be none to show",
    "--jobs": "shares the work, the same for any number",
    "--json": "prints the same in another form, where there may be one form alone",
    "--check": "looks for broken constraints, where there may be none",
    "--fenced": "has no broker to fence without a value that names one",
    "--assignment-interval-ms": "is waited for only where members come within it",
    "--cordoned": "has no broker to cordon without a value that names one",
    "--racks": "takes brokers' racks, which a table alone shows",
    "--seed": "is drawn from where something is drawn: Kafka's assignors never draw",
    "--kafka": "answers as a release, which may answer alike",
    "--topic": "selects what may be all there is",
    "--config": "sets what a log may not come to",
    "--recovery-point": "begins where recovery may begin anyhow",
    "--clean-shutdown": "writes a marker that the output does not show",
    "--now-ms": "is the time, which may not matter",
    "--retention": "lets records expire, which a short run may not come to",
    "--retention-bytes": "likewise",
    "--retention-ms": "likewise",
    "--without": "is a rule that a short run may not come to",
    "--placer": "places partitions that a short run may not tell apart",
}
"""Options that may leave the output as it is, and why that is no fault."""


def named(value: object) -> str | None:
    return value.name if isinstance(value, Command) else value.opts[-1] if isinstance(value, click.Option) else None


def test_the_commands_are_found() -> None:
    assert len(COMMANDS) > 15
    assert len(NUMBERS) > 50


@pytest.mark.parametrize(("command", "option"), NUMBERS, ids=named)
def test_a_number_has_a_lower_and_an_upper_bound(command: Command, option: click.Option) -> None:
    assert isinstance(option.type, click.IntRange | click.FloatRange)
    assert option.type.min is not None
    assert option.type.max is not None
    assert option.type.max < HUGE


@pytest.mark.parametrize("number", [HUGE, -HUGE], ids=["huge", "negative"])
@pytest.mark.parametrize(("command", "option"), NUMBERS, ids=named)
def test_a_number_beyond_every_limit_is_one_sentence_with_the_limits(
    command: Command, option: click.Option, number: int
) -> None:
    ran = command.run(option.opts[-1], str(number))
    assert (ran.status, ran.out) == (2, "")
    assert "Traceback" not in ran.err
    assert option.opts[0] in ran.sentence
    assert str(number) in ran.sentence or f"{float(number)}" in ran.sentence
    assert "is not in the range" in ran.sentence


@pytest.mark.parametrize(("name", "smallest"), SEEDS.items())
def test_the_smallest_and_the_largest_seed_can_be_run(name: str, smallest: tuple[str, ...]) -> None:
    command = COMMANDS[name]
    (seed,) = [option for option in command.options if option.name == "seed"]
    assert isinstance(seed.type, click.IntRange)
    for number in (seed.type.min, seed.type.max):
        ran = command.run(*smallest, "--seed", str(number))
        assert ran.status in (0, 1), ran.sentence
        assert "Traceback" not in ran.err


def test_every_seed_without_spark_is_run_at_its_limits() -> None:
    has_seed = {name for name, command in COMMANDS.items() if any(each.name == "seed" for each in command.options)}
    assert has_seed - set(SEEDS) == {"fleet"}


def test_the_last_of_many_seeds_is_a_seed() -> None:
    ran = COMMANDS["simulate"].run("--seed", str(2**63 - 1), "--seeds", "2")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == f"brokerside: --seeds 2 from --seed {2**63 - 1} on goes beyond the largest seed, {2**63 - 1}\n"


def _value(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return next(choice for choice in reversed(option.type.choices) if choice != option.default)
    return VALUES.get(option.opts[0], "7")


@pytest.mark.parametrize(("name", "mode"), MODES.values(), ids=MODES)
def test_an_option_beside_a_mode_changes_the_answer_or_is_refused_with_two_names(
    name: str, mode: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    command = COMMANDS[name]
    alone = None
    for option in command.options:
        if set(option.opts) & {mode[0], "--help"} or option.opts[0] in HARMLESS:
            continue
        value = () if option.is_flag else (_value(option),)
        ran = command.run(*mode, option.opts[0], *value)
        if ran.status == 2:
            two = set(re.findall(r"--[a-z-]+", ran.sentence))
            assert two & {option.opts[0], mode[0]}, ran.sentence
            assert len(two) > 1, ran.sentence
            continue
        alone = alone or command.run(*mode)
        assert ran.out != alone.out, f"{option.opts[0]} has no effect with {mode[0]}"


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("requests", "--rate 100 --load 3", "--load has no effect with --rate; leave out one of the two"),
        ("requests", "--slow-factor 3", "--slow-factor has no effect without --slow-handlers; give both, or neither"),
        (
            "groups simulate",
            "--scenario S60 --members 3",
            "--members has no effect with --scenario; leave out one of the two",
        ),
        ("simulate", "--seeds 3 --shrink", "--shrink has no effect with --seeds; leave out one of the two"),
        (
            "groups assign",
            "--corrected",
            "--corrected has no effect with --assignor range; it is for sticky and cooperative-sticky",
        ),
        ("report", "--tolerance 3", "--tolerance has no effect without --fail-on; give both, or neither"),
        ("explore", "--full", "--full has no effect without --table; give both, or neither"),
        (
            "log stats",
            "--no-compaction --now-ms 3",
            "--now-ms has no effect with --no-compaction; leave out one of the two",
        ),
    ],
)
def test_an_option_without_effect_is_one_sentence_and_status_2(name: str, given: str, sentence: str) -> None:
    ran = COMMANDS[name].run(*given.split())
    assert (ran.status, ran.out, ran.err) == (2, "", f"brokerside: {sentence}\n")
