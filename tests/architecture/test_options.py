"""Every option of every command: a number has its limits."""

from __future__ import annotations

from typing import Final

import click
import pytest

from tests.architecture.options import Command, commands
from tests.architecture.test_tidy import PRIVATE_WORDS

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


def named(value: object) -> str | None:
    return value.name if isinstance(value, Command) else value.opts[-1] if isinstance(value, click.Option) else None


def test_the_commands_are_found() -> None:
    assert len(COMMANDS) > 15
    assert len(NUMBERS) > 50


@pytest.mark.parametrize("command", COMMANDS.values(), ids=named)
def test_help_is_sentences_in_the_words_of_the_field(command: Command) -> None:
    for option in command.options:
        if not option.hidden and option.name != "help":
            assert (option.help or "").endswith("."), option.name
            assert PRIVATE_WORDS.search(option.help or "") is None, option.name


@pytest.mark.parametrize(("command", "option"), NUMBERS, ids=named)
def test_a_number_has_two_bounds_and_one_beyond_them_is_a_sentence(command: Command, option: click.Option) -> None:
    assert isinstance(option.type, click.IntRange | click.FloatRange)
    assert None not in (option.type.min, option.type.max)
    for number in (HUGE, -HUGE):
        ran = command.run(option.opts[-1], str(number))
        assert (ran.status, ran.out) == (2, "")
        assert option.opts[0] in ran.sentence
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


def test_the_last_of_many_seeds_is_a_seed() -> None:
    ran = COMMANDS["simulate"].run("--seed", str(2**63 - 1), "--seeds", "2")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == f"brokerside: --seeds 2 from --seed {2**63 - 1} on goes beyond the largest seed, {2**63 - 1}\n"


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
