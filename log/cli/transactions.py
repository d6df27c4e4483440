"""Run `brokerside log transactions`, which lists open, hanging and aborted transactions.

Source: KIP-664; kafka-transactions find-hanging, 4.4.0, asks brokers that run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import click

from broker.cli import EXIT_REFUSED, takes
from broker.errors import CorruptDataError
from broker.units import TimeMs
from broker.wording import counted
from log.cli.output import JSON, NOW, PATHS, print_error, print_lines, time_ms
from log.segments.file_names import LOG
from log.tools.sources import SourceFolder, expand_all
from log.tools.transactions import (
    STATE_TOPIC,
    LogTransactions,
    Transaction,
    TransactionState,
    coordinator_entries,
    judged,
    partition_of,
    read_transactions,
)


@attrs.frozen(kw_only=True)
class TransactionsCommand:
    """Hold the options of `brokerside log transactions`: the partitions to read and the form of the output."""

    paths: tuple[Path, ...]
    now_ms: TimeMs = attrs.field(converter=time_ms)
    as_json: bool


@click.command("transactions")
@PATHS
@NOW
@JSON
@takes(TransactionsCommand)
def transactions_command(options: TransactionsCommand) -> int:
    """List open, hanging and aborted transactions; exit with status 1 if one hangs.

    A hanging transaction is open and no coordinator will end it: compaction and consumers that read committed records
    stop there. kafka-transactions --abort ends it.

    \b
    brokerside log transactions orders-0
    brokerside log transactions --json /var/lib/kafka
    """
    folders = expand_all(options.paths)
    beside = {path for folder in folders for path in Path(folder.shown).resolve().parent.glob(f"{STATE_TOPIC}-*")}
    coordinators = coordinator_entries(expand_all(sorted(beside)))
    hanging_count, is_unreadable = 0, False
    for folder in folders:
        if not folder.of_kind(LOG):
            continue
        try:
            found = read_transactions(folder)
        except CorruptDataError as damage:
            print_error(str(damage))
            is_unreadable = True
            continue
        partition = partition_of(folder)
        undecided = [judged(each, partition, coordinators, now_ms=options.now_ms) for each in found.open]
        hanging_count += sum(each.state is TransactionState.HANGING for each in undecided)
        listed = [*undecided, *found.aborted]
        if options.as_json:
            print_lines(json.dumps(_row(folder, each, found)) for each in listed)
        else:
            print_lines(f"{folder.shown}: {each.text(options.now_ms)}" for each in listed)
    if not options.as_json:
        print_lines([f"{counted(hanging_count, 'hanging transaction')}"])
    return EXIT_REFUSED if hanging_count or is_unreadable else 0


def _row(folder: SourceFolder, transaction: Transaction, found: LogTransactions) -> dict[str, Any]:
    return {
        "directory": folder.shown,
        "state": transaction.state.value,
        "producerId": transaction.producer_id,
        "producerEpoch": transaction.producer_epoch,
        "firstOffset": transaction.first_offset,
        "lastOffset": transaction.last_offset,
        "sinceMs": transaction.since_ms,
        "transactionalId": transaction.transactional_id,
        "coordinatorState": transaction.coordinator_state,
        "lastStableOffset": found.last_stable_offset,
    }
