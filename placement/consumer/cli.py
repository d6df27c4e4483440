"""Define `brokerside groups assign`, which prints Kafka's assignment of one group, or of printed groups, offline.

Standard output carries the answer; a file that cannot be used ends with status 2, an assignor that refuses, as Kafka's
would throw, and a rejected row with status 1. Source: ours; kafka-consumer-groups (4.3.1) for words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import click

from broker.cli import EXIT_REFUSED, kafka_option, printable, takes
from broker.cli_options import JAVA_SEED, live_options
from broker.errors import InputError, UsageError
from broker.releases import Release
from broker.small_files import read_small
from placement.consumer.answers import Answer, answer_all, answer_json, answer_lines, compared_json, compared_lines
from placement.consumer.group import Topic
from placement.consumer.group_spec import CLASSIC_DEFAULT, GroupQuestion, read_group_spec, read_previous
from placement.consumer.printed_groups import (
    PrintedMembers,
    is_of_groups,
    question_of,
    read_printed_members,
    topics_of_view,
)
from placement.consumer.registry import CORRECTED, KAFKAS
from placement.consumer.steps import Step, step_lines, steps_json, steps_of
from placement.formats.documents import JSON_BYTES_MAX, collect
from placement.formats.read import read_dump
from placement.formats.snapshot_groups import is_snapshot_text

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_NOBODY: Final = "no active members, so that there is nothing to assign"


@attrs.frozen(kw_only=True)
class AssignOptions:
    """Hold the options of `groups assign`."""

    spec: Path | None
    name: str | None
    previous: Path | None
    group: str | None
    topics: Path | None
    compare: bool
    until_stable: bool
    corrected: bool
    release: Release
    seed: int
    as_json: bool
    bootstrap_server: str | None
    command_config: str | None

    def names(self, default: str) -> list[str]:
        """Return the names of the assignors that are asked."""
        name = default if self.name is None else self.name
        return list(dict.fromkeys([*KAFKAS, name])) if self.compare else [name]


@click.command("assign")
@click.argument("spec", type=_FILE, metavar="[SPEC]", required=False)
@click.option(
    "--assignor",
    "name",
    help=f"Assignor: {', '.join(KAFKAS)}, or one that a package offers (default {CLASSIC_DEFAULT}; uniform for "
    "printed groups whose members have epochs).",
)
@click.option(
    "--previous", type=_FILE, help="Former assignment: JSON, or the output of kafka-consumer-groups --describe."
)
@click.option("--group", metavar="NAME", help="Answer for this group alone, of those that were printed.")
@click.option("--topics", type=_FILE, help="Dump that says how many partitions topics have: kafka-topics --describe.")
@click.option("--compare", is_flag=True, help="Compare all of Kafka's assignors and the one of --assignor.")
@click.option(
    "--until-stable",
    is_flag=True,
    help="Assign again until nothing moves, and print each step: cooperative rebalances, or how members of a consumer"
    " group (KIP-848) reach their target.",
)
@click.option("--corrected", is_flag=True, help="Use the sticky assignors without Kafka's known defects.")
@kafka_option()
@click.option(
    "--seed", type=JAVA_SEED, default=0, show_default=True, help="Seed of assignors that draw; Kafka's never draw."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON with all moves; --previous reads it back.")
@live_options
@takes(AssignOptions)
def assign_command(options: AssignOptions) -> int:
    """Print the assignment that Kafka would make for the group in SPEC.

    \b
    SPEC is what kafka-consumer-groups --describe --members --verbose prints or
    brokerside snapshot wrote, whose groups are assigned once more, or JSON:
      {"topics": [{"topic": "orders", "partitions": 4},
                  {"topic": "audit", "partitions": 3}],
       "members": [{"member_id": "c0", "topics": ["orders", "audit"]},
                   {"member_id": "c1", "topics": ["orders"], "rack_id": "a",
                    "group_instance_id": "i1"}]}

    A topic may have "topic_id" and "replica_racks", a list of racks for each partition.

    \b
    What members held is the table that kafka-consumer-groups --describe prints,
    or JSON:
      {"generation": 4,
       "members": [{"member_id": "c0",
                    "partitions": [{"topic": "orders", "partitions": [0, 1]}]}]}

    \b
    brokerside groups assign group.json --assignor sticky --previous before.json
    brokerside groups assign group.json --previous before.json --until-stable
    brokerside groups assign group.json --compare
    brokerside groups assign members.txt --topics topics.txt
    """
    if options.corrected and not options.compare and options.names(CLASSIC_DEFAULT)[0] not in CORRECTED:
        name = options.names(CLASSIC_DEFAULT)[0]
        raise UsageError(f"--corrected has no effect with --assignor {name}; it is for {' and '.join(CORRECTED)}")
    if options.until_stable and options.compare:
        raise UsageError("--until-stable follows one assignor, and --compare asks all")
    data, source = _input(options)
    text = collect([data], source=source)
    return _of_printed(options, text, source) if is_of_groups(text) else _of_json(options, data, source)


def _input(options: AssignOptions) -> tuple[bytes, str]:
    """Return SPEC, or the snapshot of the live cluster, and what errors call it."""
    if options.bootstrap_server is None and options.spec is not None:
        return read_small(options.spec, size_bytes_max=JSON_BYTES_MAX), options.spec.name
    context = click.get_current_context()
    if options.bootstrap_server is None:
        raise click.UsageError("Missing argument 'SPEC'.", context)
    if options.spec is not None:
        raise UsageError("SPEC and --bootstrap-server are two inputs; give one of them")
    joined: dict[str, Callable[[str, str | None], bytes]] | None = context.find_object(dict)
    if joined is None:
        raise UsageError("--bootstrap-server is part of `brokerside groups assign`")
    return joined["snapshot"](options.bootstrap_server, options.command_config), options.bootstrap_server


def _of_json(options: AssignOptions, data: bytes, source: str) -> int:
    question = read_group_spec(data, source=source)
    for option, value in (("--group", options.group), ("--topics", options.topics)):
        if value is not None:
            raise UsageError(
                f"{option} is for what kafka-consumer-groups --describe --members --verbose prints; this is JSON"
            )
    held = options.previous
    if held is not None:
        before = read_previous(read_small(held, size_bytes_max=JSON_BYTES_MAX), source=held.name)
        question = attrs.evolve(question, owned=before, held=before)
    answers = _answers(options, question)
    if options.as_json:
        click.echo(json.dumps(_json(options, question, answers)))
    else:
        _echo(_answer_lines(options, question, answers))
    return _status(options, answers)


def _answers(options: AssignOptions, question: GroupQuestion) -> tuple[Answer, ...]:
    names = options.names(question.assignor)
    return answer_all(question, names, corrected=options.corrected, seed=options.seed, release=options.release)


def _steps(options: AssignOptions, question: GroupQuestion, answers: Sequence[Answer]) -> tuple[Step, ...]:
    name = answers[0].assignor
    return steps_of(question, name, corrected=options.corrected, seed=options.seed, release=options.release)


def _json(options: AssignOptions, question: GroupQuestion, answers: Sequence[Answer]) -> dict[str, Any]:
    if options.until_stable:
        return steps_json(_steps(options, question, answers))
    return compared_json(answers) if options.compare else answer_json(answers[0])


def _answer_lines(options: AssignOptions, question: GroupQuestion, answers: Sequence[Answer]) -> Iterator[str]:
    if options.until_stable:
        return step_lines(_steps(options, question, answers))
    return compared_lines(answers, question.held_count) if options.compare else answer_lines(answers[0], question)


def _echo(lines: Iterable[str], *, err: bool = False) -> None:
    for line in lines:
        click.echo(line, err=err)


def _status(options: AssignOptions, answers: Sequence[Answer]) -> int:
    refused = [(answer.assignor, answer.refusal) for answer in answers if answer.refusal is not None]
    if refused and not options.compare:
        name, refusal = refused[0]
        click.echo(f"{name}: Kafka throws {refusal.kafka_class}: {printable(str(refusal))}", err=True)
    return EXIT_REFUSED if refused else 0


def _of_printed(options: AssignOptions, text: str, source: str) -> int:
    """Answer for the groups of an output of kafka-consumer-groups, and return the exit status."""
    if options.previous is not None:
        raise UsageError(f"--previous has no effect: {source} says what its members hold")
    printed = read_printed_members(text, source=source)
    groups, empty = _chosen(printed, options.group)
    known = _topics(text.encode(), source) if is_snapshot_text(text) else None
    if options.topics is not None:
        known = _topics(read_small(options.topics, size_bytes_max=JSON_BYTES_MAX), options.topics.name)
    status, documents = 0, []
    for place, group in enumerate(groups):
        question = question_of(printed, group, known, options.name)
        answers = _answers(options, question)
        status = max(status, _status(options, answers))
        if options.as_json:
            documents.append(_document(options, question, answers))
        else:
            _echo((*("",) * (place > 0), *_lines(options, question, answers)))
    if options.as_json:
        click.echo(json.dumps(_whole(printed, documents, empty, alone=options.group is not None)))
    elif empty:
        _echo((*("",) * bool(groups), *(f"group '{printable(name)}': {_NOBODY}" for name in empty)))
    elif not groups:
        click.echo(f"no group with {_NOBODY[3:]}")
    _echo(_reject_lines(printed), err=True)
    return EXIT_REFUSED if printed.rejects else status


def _chosen(printed: PrintedMembers, name: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the groups to assign, and of those without members."""
    if name is None:
        return tuple(printed.groups), printed.empty
    groups = tuple(one for one in printed.groups if one == name)
    empty = tuple(one for one in printed.empty if one == name)
    if not groups and not empty:
        others = ", ".join(f"'{one}'" for one in (*printed.groups, *printed.empty)[:10])
        raise InputError(f"no group '{name}' in it; it has {others or 'no group'}", source=printed.source)
    return groups, empty


def _topics(data: bytes, source: str) -> dict[str, Topic]:
    dump = read_dump([data], source=source)
    if len(dump.clusters) != 1:
        raise InputError(f"the dump is of {len(dump.clusters)} clusters; give that of one", source=source)
    return topics_of_view(dump.clusters[0], source=source)


def _lines(options: AssignOptions, question: GroupQuestion, answers: Sequence[Answer]) -> Iterator[str]:
    of = "all" if options.compare else answers[0].assignor
    partitions = sum(topic.partition_count for topic in question.topics)
    members, topics = _many(len(question.members), "member"), _many(len(question.topics), "topic")
    of_topics = f"{_many(partitions, 'partition')} of {topics}"
    yield f"group '{printable(question.name)}': {members}, {of_topics}, assignor {of}"
    yield from question.notes
    yield ""
    yield from _answer_lines(options, question, answers)
    if answers[0].assignment is not None and not options.compare and not options.until_stable:
        moved = _moved_count(answers[0])
        verb = "moves" if moved == 1 else "move"
        yield f"{moved} of {_many(question.held_count, 'partition')} {verb} from the present assignment"


def _document(options: AssignOptions, question: GroupQuestion, answers: Sequence[Answer]) -> dict[str, Any]:
    counts = {} if options.compare else {"moved_count": _moved_count(answers[0])}
    shown = {"clients": dict(question.clients), "notes": list(question.notes), "held_count": question.held_count}
    return _json(options, question, answers) | {"group": question.name} | shown | counts


def _whole(
    printed: PrintedMembers, documents: list[dict[str, Any]], empty: Sequence[str], *, alone: bool
) -> dict[str, Any]:
    """Return the document of all groups, or with `alone` that of the one group, which `--previous` can read."""
    rejected = len(printed.rejects)
    rows = {"in": printed.rows_analysed + rejected, "analysed": printed.rows_analysed, "rejected": rejected}
    if alone and documents:
        return documents[0] | {"rows": rows}
    return {"version": 1, "groups": documents, "empty_groups": list(empty), "rows": rows}


def _reject_lines(printed: PrintedMembers) -> Iterator[str]:
    for reject in printed.rejects[:10]:
        where = f"{printed.source}:{reject.line}"
        yield f"{where}: {printable(reject.reason)} (found '{printable(reject.value.strip())}')"
    if printed.rejects:
        rejected = len(printed.rejects)
        yield (
            f"{printed.rows_analysed + rejected} rows in = {printed.rows_analysed} analysed + {rejected} rejected: "
            "the answer leaves out the members of rejected rows"
        )


def _moved_count(answer: Answer) -> int:
    """Return how many partitions that a member holds go to another member, or to nobody."""
    return sum(move.before is not None for move in answer.moves)


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
