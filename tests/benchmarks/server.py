"""Requests per CPU second of a served cluster: `python -m tests.benchmarks.server [ROUNDS] [--json] [--profile]`.

A process of its own serves three brokers with every check on; connections write a record of 100 bytes with acks=all and
fetch it, in turn. The CPU time is that of the serving process, whose thread does nothing else; the clients' does not
count. With `--connections`, the memory of the serving process with 1,000 more connections that say nothing.
"""

from __future__ import annotations

import asyncio
import cProfile
import io
import multiprocessing
import os
import pstats
import resource
import statistics
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from kio.serial import entity_reader, entity_writer

from broker.ids import Offset
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch
from log.record import Record
from replication.testing import ClusterSpec, Kafka
from replication.testing.entities import build, request_class, response_class
from replication.testing.sockets import SocketServer
from tests.benchmarks.report import describe_machine, show

ROUNDS = 7
CONNECTIONS: Final = 12
TURNS: Final = 100
IDLE_CONNECTIONS: Final = 1_000
PRODUCE: Final = (0, 9)
FETCH: Final = (1, 12)
PARTITIONS: Final = 6
BATCH: Final = build_batch(BatchSpec(), [Record(Offset(0), TimeMs(5_000), b"key", bytes(100))])
TICKS: Final = os.sysconf("SC_CLK_TCK")


def serve(pipe: Connection, *, is_profiled: bool) -> None:
    """Serve until the other end of the pipe says so."""
    server = SocketServer(ClusterSpec(topics={"t": PARTITIONS}))
    server.start()
    kafka, profile = Kafka(server.served, server.call), cProfile.Profile()
    leaders = [kafka.leader("t", index) for index in range(PARTITIONS)]
    server.call(profile.enable if is_profiled else lambda: None)
    pipe.send((kafka.bootstrap_servers, leaders))
    pipe.recv()
    server.call(profile.disable if is_profiled else lambda: None)
    pipe.send(str(kafka.verdict()))
    server.stop()
    if is_profiled:
        pstats.Stats(profile).sort_stats("tottime").print_stats(35)


def framed(api: tuple[int, int], values: dict[str, Any]) -> bytes:
    """Return a request with its length."""
    body_class = request_class(*api)
    names = {"request_api_key": api[0], "request_api_version": api[1], "correlation_id": 1, "client_id": "bench"}
    buffer = io.BytesIO()
    for of, given in ((body_class.__header_schema__, names), (body_class, values)):
        entity_writer(of)(buffer, build(of, given))
    return len(buffer.getvalue()).to_bytes(4, "big") + buffer.getvalue()


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, api: tuple[int, int], frame: bytes
) -> Any:
    """Return the response to a request."""
    writer.write(frame)
    data = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    body_class = response_class(*api)
    _, start = entity_reader(body_class.__header_schema__)(data, 0)
    return entity_reader(body_class)(data, start)[0]


async def write_and_fetch(server: str, partition: int, turns: int) -> None:
    """Write a record and fetch it, so many times."""
    host, port = server.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    data = {"name": "t", "partition_data": [{"index": partition, "records": BATCH}]}
    write = framed(PRODUCE, {"transactional_id": None, "acks": -1, "timeout": 30_000, "topic_data": [data]})
    for _ in range(turns):
        answer = (await exchange(reader, writer, PRODUCE, write)).responses[0].partition_responses[0]
        assert answer.error_code == 0, answer
        wanted = {"partition": partition, "fetch_offset": answer.base_offset, "partition_max_bytes": 1 << 20}
        asked = {"replica_id": -1, "max_wait": 500, "min_bytes": 1, "max_bytes": 1 << 20}
        topics = [{"topic": "t", "partitions": [{**wanted, "current_leader_epoch": -1, "log_start_offset": -1}]}]
        fetched = await exchange(reader, writer, FETCH, framed(FETCH, {**asked, "topics": topics}))
        assert fetched.responses[0].partitions[0].records, fetched
    writer.close()


def cpu_s(process_id: int) -> float:
    """Return the CPU seconds that a process has used."""
    words = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS


def rss_kib(process_id: int) -> int:
    """Return the resident memory of a process in KiB."""
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


async def load(servers: list[str], leaders: list[int], turns: int) -> None:
    """Let all connections write and fetch at the same time."""
    places = [place % PARTITIONS for place in range(CONNECTIONS)]
    await asyncio.gather(*(write_and_fetch(servers[leaders[place]], place, turns) for place in places))


async def connection_kib(servers: list[str], process_id: int) -> float:
    """Return the memory in KiB of one connection that says nothing, of a thousand."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4 * IDLE_CONNECTIONS), hard))
    before = rss_kib(process_id)
    places = [servers[place % len(servers)].split(":") for place in range(IDLE_CONNECTIONS)]
    opened = [await asyncio.open_connection(host, int(port)) for host, port in places]
    await asyncio.sleep(2)
    found = (rss_kib(process_id) - before) / IDLE_CONNECTIONS
    for _, writer in opened:
        writer.close()
    return found


def main(arguments: list[str]) -> int:
    """Run the rounds and print the table."""
    numbers = [int(each) for each in arguments if each.isdigit()]
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    profiled = {"is_profiled": "--profile" in arguments}
    process = context.Process(target=serve, args=(theirs,), kwargs=profiled)
    process.start()
    assert process.pid is not None
    bootstrap, leaders = ours.recv()
    servers = bootstrap.split(",")
    asyncio.run(load(servers, leaders, TURNS))
    rates = []
    for _ in range(numbers[0] if numbers else ROUNDS):
        began_s = cpu_s(process.pid)
        asyncio.run(load(servers, leaders, TURNS))
        rates.append(2 * TURNS * CONNECTIONS / (cpu_s(process.pid) - began_s))
    kib = asyncio.run(connection_kib(servers, process.pid))
    ours.send(None)
    assert ours.recv().startswith("no invariant broken")
    process.join()
    row = {
        "requests per CPU second": round(statistics.median(rates)),
        "least": round(min(rates)),
        "most": round(max(rates)),
        "KiB a connection": round(kib, 1),
    }
    machine = describe_machine("kio")
    show("Produce and Fetch over TCP, every check on", machine, [row], as_json="--json" in arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
