"""Define `brokerside assign`, which prints a placement exactly as Kafka would make it.

One call is one controller's life: the topics are created in the order given, on one generator, so the second topic
stands where Kafka would have put it after the first. The seed is 0 unless given, as Kafka's own is random.

Source: kafka-topics --create and --alter, kafka-reassign-partitions (Kafka 4.3.1) for words and formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import click
import numpy as np

from broker.cli import EXIT_REFUSED, kafka_option, printable, takes
from broker.cli_options import JAVA_SEED, idle_beside
from broker.cluster import BrokerView, ClusterView, Int32Array
from broker.entropy import JavaRandom
from broker.errors import InputError, UsageError
from broker.ids import INT32_MAX, BrokerId, broker_id
from broker.releases import NEWEST, Release
from broker.small_files import read_pieces, read_small
from broker.wording import counted
from placement.balance.constraints import check
from placement.formats.racks import RACKS_BYTES_MAX, read_racks
from placement.formats.read import read_dump
from placement.formats.reassign import write_reassignment
from placement.placers.classic import ClassicPlacer, grow_topic
from placement.placers.create_topic import check_collision, check_growth, check_topic_name, create_topic
from placement.placers.manual import parse_replica_assignment, validate_manual_assignment
from placement.placers.registry import load_placer
from placement.placers.usable import CORDONING_SINCE
from placement.spec import Assignment, PlacementSpec, ReplicaPlacer, concatenate, rows_placed

BROKER_COUNT_MAX: Final = 100_000  # Fifty times the largest clusters known; refused before memory is taken.
DUMP_BYTES_MAX: Final = 1 << 30  # Seven million partitions, some three times those of the largest clusters known.
TOPIC_FORM: Final = "the form is NAME:PARTITIONS:FACTOR, or --partitions and --replication-factor for all"
_TOPIC: Final = re.compile(r"([A-Za-z0-9._-]{1,1000})(?::(-?\d{1,30}))?(?::(-?\d{1,30}))?", re.ASCII)
_INT16: Final = click.IntRange(-(2**15), 2**15 - 1)  # What a CreateTopics request has it in.
_INT32: Final = click.IntRange(-(2**31), INT32_MAX)  # Likewise.
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_RANGE: Final = re.compile(r"(\d{1,30})(?:-(\d{1,30}))?", re.ASCII)


@attrs.frozen
class TopicRequest:
    """Request one topic to be created, or grown to `partition_count`; a growing topic may leave out the factor."""

    name: str
    partition_count: int
    replication_factor: int | None

    def spec(self) -> PlacementSpec:
        """Return the placer's request for this topic; raise UsageError without a factor."""
        if self.replication_factor is None:
            raise UsageError(f"topic {self.name!r} needs a replication factor; {TOPIC_FORM}")
        return PlacementSpec(0, self.partition_count, self.replication_factor)


@attrs.frozen(kw_only=True)
class AssignOptions:
    """Hold the arguments and options of `brokerside assign`; None is an option that was not given."""

    topics: tuple[str, ...]
    partitions: int | None
    replication_factor: int | None
    ids: str | None
    dump: Path | None
    racks: Path | None
    fenced: str | None
    cordoned: str | None
    placer_name: str
    release: Release | None
    seed: int
    start_index: int | None
    grow: Path | None
    manual: str | None
    output: str
    checked: bool


def parse_broker_list(text: str) -> tuple[BrokerId, ...]:
    """Return the ids listed in a text such as "0-5,7", in order; raise UsageError with the invalid part."""
    ids: list[BrokerId] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise UsageError(f"broker list has {part!r}; allowed are ids and ranges, such as 0-5,7")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= BROKER_COUNT_MAX - len(ids):
            raise UsageError(f"broker list has {part!r}; a range ascends, and at most {BROKER_COUNT_MAX:,} brokers fit")
        ids.extend(broker_id(value) for value in range(first, last + 1))
    return tuple(ids)


def parse_topic(text: str, *, partition_count: int | None, replication_factor: int | None) -> TopicRequest:
    """Return the topic that "orders:12:3" names; the options supply what the text leaves out."""
    match = _TOPIC.fullmatch(text)
    if match is None:
        raise UsageError(f"topic {text!r} cannot be read; {TOPIC_FORM}")
    partitions = partition_count if match[2] is None else int(match[2])
    if partitions is None:
        raise UsageError(f"topic {text!r} needs a number of partitions; {TOPIC_FORM}")
    return TopicRequest(match[1], partitions, replication_factor if match[3] is None else int(match[3]))


def place_topics(
    topics: Sequence[TopicRequest], brokers: Sequence[BrokerView], placer: ReplicaPlacer, seed: int
) -> Assignment:
    """Return the assignments of the topics, placed in turn with one random generator.

    Raises what `create_topic` raises; the classic placer, which is older, checks and refuses by itself.
    """
    entropy = JavaRandom(seed)

    def placed(topic: TopicRequest, before: Sequence[TopicRequest]) -> Assignment:
        spec = topic.spec()
        check_collision(topic.name, [other.name for other in before])
        place = rows_placed if isinstance(placer, ClassicPlacer) else partial(create_topic, topic.name)
        return Assignment.of_topic(topic.name, place(placer, spec, brokers, entropy))

    return concatenate(placed(topic, topics[:index]) for index, topic in enumerate(topics))


def _read_view(path: Path) -> ClusterView:
    parsed = read_dump(read_pieces(path, size_bytes_max=DUMP_BYTES_MAX), source=path.name)
    if parsed.rejects:
        first = parsed.rejects[0]
        place = first.source if first.line is None else f"{first.source}:{first.line}"
        many = f"{parsed.rows_rejected:,} of {counted(parsed.rows_in, 'row')}"
        click.echo(printable(f"warning: {many} put aside; the first: {place}: {first.reason}"), err=True)
    if len(parsed.clusters) > 1:
        names = ", ".join(view.name for view in parsed.clusters)
        raise InputError(f"holds {len(parsed.clusters)} clusters ({names}); one is needed", source=path.name)
    view: ClusterView = parsed.clusters[0]
    return view


def _brokers(options: AssignOptions) -> tuple[BrokerView, ...]:
    if (options.ids is None) == (options.dump is None):
        raise UsageError("name the brokers by --brokers LIST or by --from DUMP, one of the two")
    if options.dump is not None:
        brokers = _read_view(options.dump).brokers
    else:
        assert options.ids is not None
        brokers = tuple(BrokerView(id=each) for each in parse_broker_list(options.ids))
    if options.racks is not None:
        data = read_small(options.racks, size_bytes_max=RACKS_BYTES_MAX)
        racks = read_racks(data, source=options.racks.name)
        rack_of = dict(racks.for_cluster(*([] if options.dump is None else [options.dump.stem])))
        if not rack_of:
            raise UsageError(f"--racks {options.racks}: {racks.missing()}")
        brokers = tuple(attrs.evolve(broker, rack=rack_of.get(broker.id, broker.rack)) for broker in brokers)
    out, closed = _named("--fenced", options.fenced, brokers), _named("--cordoned", options.cordoned, brokers)
    if closed and (options.placer_name == "classic" or (options.release or NEWEST) < CORDONING_SINCE):
        raise UsageError("--cordoned needs Kafka 4.3 or later, which has cordoned log directories (KIP-1066)")
    return tuple(
        attrs.evolve(broker, fenced=broker.fenced or broker.id in out, cordoned=broker.cordoned or broker.id in closed)
        for broker in brokers
    )


def _named(option: str, text: str | None, brokers: Sequence[BrokerView]) -> set[BrokerId]:
    """Return the brokers that an option names; raise UsageError for one that is not among them."""
    found = set(parse_broker_list(text)) if text else set()
    unknown = sorted(found - {broker.id for broker in brokers})
    if unknown:
        raise UsageError(f"{option} names broker {unknown[0]}, which is not among the brokers")
    return found


def grown(
    topic: TopicRequest, now: ClusterView, brokers: Sequence[BrokerView], placer: ReplicaPlacer, seed: int
) -> Assignment:
    """Return the partitions added by growing `topic` to `partition_count`, placed as Kafka's caller places them."""
    names = [view.name for view in now.topics]
    if topic.name not in names:
        raise UsageError(f"topic {topic.name!r} is not in {now.source}; there are {', '.join(names[:5]) or 'none'}")
    existing = _existing(now, names.index(topic.name))
    count = len(existing)
    if isinstance(placer, ClassicPlacer):
        matrix = grow_topic(topic.name, existing, topic.partition_count, brokers)
    else:
        check_growth(topic.name, count, topic.partition_count)
        factor = int((existing[0] >= 0).sum())
        spec = PlacementSpec(count, topic.partition_count - count, factor)
        matrix = rows_placed(placer, spec, brokers, JavaRandom(seed))
    return Assignment.of_topic(topic.name, matrix, start_partition=count)


def _existing(now: ClusterView, topic_index: int) -> Int32Array:
    """Return the replicas of a topic's partitions, in order; raise InputError unless all of them are listed."""
    topic = now.topics[topic_index]
    rows = now.partitions.topic_index == topic_index
    ids = now.partitions.partition_ids[rows]
    order = ids.argsort()
    skipped = (ids[order] != np.arange(len(ids))).nonzero()[0]
    if len(skipped) or len(ids) < (topic.partition_count or 1):
        missing = skipped[0] if len(skipped) else len(ids)
        raise InputError(f"does not list partition {missing} of topic {topic.name!r}", source=now.source)
    existing: Int32Array = now.partitions.replicas[rows][order]
    return existing


def _assignment(options: AssignOptions, brokers: Sequence[BrokerView]) -> Assignment:
    topics = options.topics
    if options.manual is not None:
        if len(topics) != 1:
            raise UsageError(f"--replica-assignment places one topic; {len(topics)} are named")
        check_topic_name(topics[0])
        manual = validate_manual_assignment(
            parse_replica_assignment(options.manual), brokers, release=options.release or NEWEST
        )
        return Assignment.of_topic(topics[0], manual)
    asked = [
        parse_topic(text, partition_count=options.partitions, replication_factor=options.replication_factor)
        for text in topics
    ]
    _refuse_twice([topic.name for topic in asked])
    placer = load_placer(options.placer_name, options.release)
    if options.start_index is not None:
        if not isinstance(placer, ClassicPlacer):
            raise UsageError(f"--start-index is for the classic placer; the placer is {options.placer_name}")
        placer = ClassicPlacer(fixed_start_index=options.start_index)
    if options.grow is None:
        return place_topics(asked, brokers, placer, options.seed)
    now = _read_view(options.grow)
    return concatenate(grown(topic, now, brokers, placer, options.seed) for topic in asked)


def _refuse_twice(names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise UsageError(f"topic {name!r} is named twice; a reassignment holds each partition once")


def table_lines(assignment: Assignment, brokers: Iterable[BrokerView]) -> Iterator[str]:
    """Yield the assignment as aligned text: topic, partition, leader, replicas, and known racks."""
    rack_of = {broker.id: broker.rack for broker in brokers}
    racked = any(rack is not None for rack in rack_of.values())
    names = [printable(name) for name in assignment.topics]
    width = max([5, *map(len, names)])
    replica_width = max(8, len(",".join(str(each) for each in assignment.replicas.max(axis=0, initial=0).tolist())))
    yield f"{'topic':<{width}}  partition  leader  {'replicas':<{replica_width}}" + ("  racks" if racked else "")
    columns = zip(
        assignment.topic_index.tolist(), assignment.partition_ids.tolist(), assignment.replicas.tolist(), strict=True
    )
    for topic, partition, row in columns:
        replicas = [each for each in row if each >= 0]
        held = ",".join(map(str, replicas))
        racks = "  " + ",".join(printable(rack_of.get(each) or "-") for each in replicas) if racked else ""
        yield f"{names[topic]:<{width}}  {partition:>9}  {replicas[0]:>6}  {held:<{replica_width}}{racks}".rstrip()


def broken_lines(assignment: Assignment, brokers: Sequence[BrokerView]) -> list[str]:
    """Return one line for each constraint that the assignment breaks, with its first partition in words."""
    lines = []
    for found in check(assignment, brokers):
        first = found.explain(limit=1)[0]
        place = "" if first.topic is None else f"{printable(first.topic)}-{first.partition}: "
        lines.append(f"{found.constraint.name}: {found.count} broken; {place}{printable(first.detail)}")
    return lines


@click.command()
@idle_beside(
    "--replica-assignment",
    *("--partitions", "--replication-factor", "--placer", "--kafka", "--seed", "--start-index", "--grow"),
)
@idle_beside("--grow", "--replication-factor")
@idle_beside("--start-index", "--seed")
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC[:PARTITIONS[:FACTOR]]...")
@click.option("--partitions", type=_INT32, help="Number of partitions of topics that give none.")
@click.option("--replication-factor", type=_INT16, help="Replication factor of topics that give none.")
@click.option("--brokers", "ids", metavar="LIST", help="Broker ids and ranges of ids, such as 0-5,7.")
@click.option("--from", "dump", type=_FILE, help="Take the brokers from a dump of the cluster, in any known format.")
@click.option("--racks", type=_FILE, help='Racks of the brokers: JSON such as {"0": "az1"}, or CSV lines broker,rack.')
@click.option("--fenced", metavar="LIST", help="Ids of the brokers that are fenced (default: none).")
@click.option(
    "--cordoned",
    metavar="LIST",
    help="Ids of the brokers whose log directories are all cordoned, so that they get no new replicas (default: none).",
)
@click.option(
    "--placer",
    "placer_name",
    default="striped",
    show_default=True,
    help="Placer: striped (KRaft), classic (before KRaft; up to Kafka 4.0), or one that a package offers.",
)
@kafka_option(default=None)
@click.option(
    "--seed", type=JAVA_SEED, default=0, show_default=True, help="Seed of java.util.Random; equal seeds place alike."
)
@click.option(
    "--start-index", type=click.IntRange(0, INT32_MAX), help="Start index of the classic placer (default: drawn)."
)
@click.option("--grow", type=_FILE, help="Dump of the present topics; print only the partitions added to them.")
@click.option(
    "--replica-assignment",
    "manual",
    metavar="LIST",
    help="Check and print this assignment, in the form of kafka-topics: 1:2,2:3 for two partitions.",
)
@click.option(
    "--format",
    "output",
    type=click.Choice(["json", "table"]),
    default="json",
    show_default=True,
    help="Output format: kafka-reassign-partitions JSON, or a table.",
)
@click.option(
    "--check", "checked", is_flag=True, help="Check the constraints too; exit with status 1 when one is broken."
)
@takes(AssignOptions)
def assign(options: AssignOptions) -> int:
    """Print where Kafka would place TOPICs, in the order given, as one controller would.

    \b
    brokerside assign orders:12:3 audit:6:3 --brokers 0-5 --racks racks.csv
    brokerside assign orders:24 --grow today.txt --from today.txt --placer classic
    """
    brokers = _brokers(options)
    assignment = _assignment(options, brokers)
    if options.output == "json":
        click.echo(write_reassignment(assignment))
    else:
        for line in table_lines(assignment, brokers):
            click.echo(line)
    broken = broken_lines(assignment, brokers) if options.checked else []
    for line in broken:
        click.echo(line, err=True)
    return EXIT_REFUSED if broken else 0
