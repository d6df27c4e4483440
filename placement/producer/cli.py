"""Run `brokerside partition`, which prints the partition that each client chooses for a key.

Source: ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import attrs
import click

from broker.cli import printable, takes
from broker.ids import INT32_MAX
from placement.producer.clients import PARTITIONERS, partition_by

NAME_WIDTH: Final = 19


@attrs.frozen(kw_only=True)
class PartitionCommand:
    """Hold the options of `brokerside partition`."""

    keys: tuple[str, ...]
    partition_count: int
    partitioner: str | None
    is_hex: bool
    as_json: bool


def _key_bytes(text: str, *, is_hex: bool) -> bytes:
    if not is_hex:
        return text.encode(errors="surrogateescape")
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no row of hexadecimal digits", param_hint="KEY") from None


@click.command("partition")
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option(
    "--partitions",
    "partition_count",
    type=click.IntRange(1, INT32_MAX),
    default=1,
    help="Number of partitions of the topic (default 1).",
)
@click.option(
    "--partitioner", metavar="NAME", type=click.Choice(tuple(PARTITIONERS)), help="Print only this one's answer."
)
@click.option("--hex", "is_hex", is_flag=True, help="Read keys as hexadecimal bytes (default: as UTF-8 text).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line instead of text.")
@takes(PartitionCommand)
def partition_command(options: PartitionCommand) -> int:
    """Print the partition that each client's partitioner chooses for a key.

    Without a key it lists the partitioners, and which client's default each one is.

    \b
    brokerside partition order-17 --partitions 12
    brokerside partition a b --partitions 12 --json
    """
    names = tuple(PARTITIONERS) if options.partitioner is None else (options.partitioner,)
    rows = list(_rows(options, names))
    if options.as_json:
        for row in rows:
            click.echo(json.dumps(row))
        return 0
    for row in rows:
        name, default_of = f"{row['partitioner']:<{NAME_WIDTH}}", f"default of {row['defaultOf'] or 'none'}"
        if "key" in row:
            default = f"  ({default_of})" if row["defaultOf"] else ""
            partition = "any" if row["partition"] is None else row["partition"]
            click.echo(f"{name}{printable(str(row['key']))}: {partition}{default}")
        else:
            click.echo(f"{name}{default_of}")
            click.echo(f"{'':<{NAME_WIDTH}}without a key: {row['withoutKey']}; source: {row['source']}")
    return 0


def _rows(options: PartitionCommand, names: tuple[str, ...]) -> Iterator[dict[str, object]]:
    for key in options.keys or (None,):
        for name in names:
            known = PARTITIONERS[name]
            row: dict[str, object] = {
                "partitioner": name,
                "defaultOf": known.default_of,
                "withoutKey": known.without_key,
                "source": known.source,
            }
            if key is not None:
                data = _key_bytes(key, is_hex=options.is_hex)
                row |= {"key": key, "partition": partition_by(name, data, options.partition_count)}
            yield row
