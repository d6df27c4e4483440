"""An asyncio program with unmodified aiokafka runs on virtual time; equal seeds give equal runs."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from kafka import KafkaConsumer, KafkaProducer

from broker.errors import UsageError
from broker.units import DurationMs, TimeMs
from replication.simulation import Fault, FaultKind
from replication.testing import Kafka, run_virtual, virtual_loop, virtual_process
from replication.testing.kafka import Verdict

ROOT = Path(__file__).parents[3]


async def write_and_read(kafka: Kafka, count: int = 40, kill_at: int = 20) -> dict[str, object]:
    """Write with idempotence, kill the leader in the midst, and read everything back in a group."""
    loop, servers = asyncio.get_running_loop(), kafka.bootstrap_servers
    producer = AIOKafkaProducer(bootstrap_servers=servers, acks="all", enable_idempotence=True)
    await producer.start()
    slowest_s = 0.0
    for number in range(count):
        if number == kill_at:
            kafka.kill_leader("orders", 0)
        sent_s = loop.time()
        await producer.send_and_wait("orders", str(number).encode(), partition=number % 2)
        slowest_s = max(slowest_s, loop.time() - sent_s)
        await asyncio.sleep(0.1)
    await producer.stop()
    consumer = AIOKafkaConsumer("orders", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest")
    await consumer.start()
    read = [(await consumer.getone()).value for _ in range(count)]
    await consumer.stop()
    return {
        "read": sorted(map(int, read)),
        "slowest": slowest_s,
        "verdict": str(kafka.verdict()),
        "lines": kafka.lines,
        "ended": loop.time(),
    }


def test_a_killed_leader_is_replaced_and_nothing_is_lost() -> None:
    began_s = time.process_time()
    found = run_virtual(write_and_read, seed=1, topics={"orders": 2})
    assert found["read"] == list(range(40))
    assert found["verdict"] == "no invariant broken; 40 records acknowledged, 0 of them lost"
    slowest_s = found["slowest"]
    assert isinstance(slowest_s, float)
    assert 5 < slowest_s < 15  # The session of the killed broker ends after 9 s at most.
    assert time.process_time() - began_s < 30


def test_equal_seeds_give_equal_runs_and_others_do_not() -> None:
    first, again, other = (run_virtual(write_and_read, seed=seed, topics={"orders": 2}) for seed in (3, 3, 4))
    assert first == again
    assert first["lines"] != other["lines"]


async def poll_without_waiting(kafka: Kafka) -> tuple[list[bytes], int, float, object]:
    """Write ten records, and read them back with polls that never wait."""
    loop, servers = asyncio.get_running_loop(), kafka.bootstrap_servers
    producer = AIOKafkaProducer(bootstrap_servers=servers, acks="all")
    consumer = AIOKafkaConsumer("orders", bootstrap_servers=servers, auto_offset_reset="earliest")
    await producer.start()
    await consumer.start()
    for number in range(10):
        await producer.send("orders", b"%d" % number)
    values, poll_count = set[bytes](), 0
    while len(values) < 10 or loop.time() < 5:
        values |= {bytes(record.value) for records in (await consumer.getmany()).values() for record in records}
        poll_count += 1
        await asyncio.sleep(0)
    await producer.stop()
    await consumer.stop()
    return sorted(values), poll_count, loop.time(), kafka.lines


_PROGRAM = """
import hashlib
from replication.testing import run_virtual
from tests.replication.testing.test_virtual import poll_without_waiting, write_and_read
for program in (write_and_read, poll_without_waiting):
    print(hashlib.sha256(repr(run_virtual(program, seed=5, topics={"orders": 2})).encode()).hexdigest())
"""


@pytest.mark.deep
def test_equal_seeds_give_equal_runs_in_processes_with_other_hash_seeds() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


def test_time_passes_for_a_program_that_polls_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_loop, "BUSY_COUNT", 3_000)
    first, again = (run_virtual(poll_without_waiting, seed=6, topics={"orders": 2}) for _ in range(2))
    assert first == again
    values, poll_count, *_ = first
    assert values == [b"%d" % number for number in range(10)]
    assert 3_000 < poll_count < 10_000, "each turn after the 3,000th costs 1 ms"


async def turns(kafka: Kafka) -> None:
    """Give way for ever, and never wait."""
    while True:
        await asyncio.sleep(0)


async def looks(kafka: Kafka) -> None:
    """Look at the clock for ever, as `getmany` without a timeout does, and never give way."""
    while True:
        time.monotonic()


@pytest.mark.parametrize("main", [turns, looks])
def test_a_program_that_never_waits_ends_at_the_limit(
    main: Callable[[Kafka], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(virtual_loop, "BUSY_COUNT", 100)
    with pytest.raises(UsageError, match="the program did not end within 60,000 ms of virtual time"):
        run_virtual(main, limit_ms=60_000)


def test_what_cannot_be_virtual_is_refused() -> None:
    async def sleeps(kafka: Kafka) -> None:
        time.sleep(1)

    async def takes_a_thread(kafka: Kafka) -> None:
        await asyncio.to_thread(print)

    async def never_ends(kafka: Kafka) -> None:
        await asyncio.get_running_loop().create_future()

    async def goes_elsewhere(kafka: Kafka) -> None:
        with pytest.raises(ConnectionRefusedError, match=r"nothing listens at example\.org:80"):
            await asyncio.open_connection("example.org", 80)

    with pytest.raises(UsageError, match=r"time\.sleep stops virtual time for every task"):
        run_virtual(sleeps)
    with pytest.raises(UsageError, match="asks for a thread, which has no virtual time"):
        run_virtual(takes_a_thread)
    with pytest.raises(UsageError, match="the program did not end within 60,000 ms of virtual time"):
        run_virtual(never_ends, limit_ms=60_000)
    run_virtual(goes_elsewhere)


async def returns(kafka: Kafka) -> int:
    """Return at once."""
    return 7


async def takes_nothing() -> None:
    """Have no parameter."""


async def takes_two(kafka: Kafka, further: int) -> None:
    """Have one parameter too many."""


def is_synchronous(kafka: Kafka) -> int:
    """Return what nobody can wait for."""
    return 7


BEGUN = "write `async def"
ALONE = "cannot be called with the cluster alone"


@pytest.mark.parametrize(
    ("main", "words"),
    [
        (takes_nothing, f"takes_nothing {ALONE}: too many positional arguments; {BEGUN} takes_nothing(kafka)`"),
        (takes_two, f"takes_two {ALONE}: missing a required argument: 'further'; {BEGUN} takes_two(kafka)`"),
        (is_synchronous, f"is_synchronous is no coroutine function and returned 7; {BEGUN} is_synchronous(kafka)`"),
        (7, "main is 7; wanted is a function, not what it returns"),
    ],
)
def test_what_is_no_program_is_refused(main: Any, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        run_virtual(main)
    assert str(refused.value) == words


def test_a_program_in_a_program_is_refused() -> None:
    async def outer(kafka: Kafka) -> None:
        run_virtual(returns)

    with pytest.raises(UsageError, match="has an event loop of its own, and one runs here already; call run_virtual"):
        run_virtual(outer)
    assert run_virtual(lambda kafka: returns(kafka)) == 7


OTHER = "has no virtual time, which asyncio alone has; kafka_cluster serves other clients in real time"


def starts_a_thread(_servers: str) -> None:
    """Start a thread."""
    threading.Thread(target=print).start()


def handles_a_signal(_servers: str) -> None:
    """Ask for the handling of a signal."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (starts_a_thread, f"a thread {OTHER}"),
        (lambda servers: KafkaProducer(bootstrap_servers=servers), f"a socket {OTHER}"),
        (lambda servers: next(KafkaConsumer("orders", bootstrap_servers=servers)), f"a socket {OTHER}"),
        (handles_a_signal, "a signal has no virtual time; catch NotImplementedError, as for asyncio on Windows"),
        (lambda _: asyncio.create_subprocess_exec("true"), "a subprocess has no virtual time"),
    ],
)
def test_what_waits_in_real_time_is_refused_though_it_is_not_asyncio_s(act: Callable[[str], Any], words: str) -> None:
    async def main(kafka: Kafka) -> None:
        done = act(kafka.bootstrap_servers)
        if done is not None:
            await done

    with pytest.raises(UsageError) as refused:
        run_virtual(main)
    assert str(refused.value) == words
    threading.Thread(target=time.time).start()  # After the run it is allowed again.


def test_nobody_can_listen_where_virtual_brokers_are() -> None:
    async def main(kafka: Kafka) -> str:
        return kafka.bootstrap_servers

    hosts = {server.rpartition(":")[0] for server in run_virtual(main).split(",")}
    assert {host.rpartition(".")[2] for host in hosts} == {"invalid"}


def test_a_program_that_waits_in_real_time_is_said_to_stand_still(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main(kafka: Kafka) -> None:
        threading.Event().wait(0.5)

    monkeypatch.setattr(virtual_process, "STILL_S", 0.1)
    run_virtual(main)
    found = capsys.readouterr().err
    assert found.startswith("brokerside: the program has not returned to its event loop for 0.1 s of real time, and is")
    assert found.endswith("clients in C, locks and other calls that wait have no virtual time\n")
    run_virtual(returns)
    assert capsys.readouterr().err == ""


def test_the_clocks_of_the_process_are_virtual_while_it_runs() -> None:
    async def main(kafka: Kafka) -> tuple[float, float]:
        wall_s, steady_s = time.time(), time.monotonic()
        await asyncio.sleep(3_600)
        return time.time() - wall_s, time.monotonic() - steady_s

    before_s = time.time()
    assert run_virtual(main) == pytest.approx((3_600, 3_600), abs=0.01)
    assert abs(time.time() - before_s) < 600


def test_other_threads_go_on_in_real_time() -> None:
    seen: list[float] = []
    begun = threading.Event()

    def look() -> None:
        begun.wait()
        time.sleep(0)
        seen.append(time.time())

    other = threading.Thread(target=look)
    other.start()

    async def main(kafka: Kafka) -> None:
        begun.set()
        other.join()
        assert abs(seen[0] - real_s) < 600
        assert abs(time.time() - real_s) > 600

    real_s = time.time()
    run_virtual(main)


def test_faults_are_told_apart_by_words() -> None:
    async def main(kafka: Kafka) -> None:
        with pytest.raises(UsageError, match="there is no broker 9; brokers are 0 to 2"):
            kafka.kill(9)
        with pytest.raises(UsageError, match="there is no partition 4 of topic 'orders'; its partitions are 0 to 0"):
            kafka.leader("orders", 4)
        with pytest.raises(UsageError, match="request 'Prduce' is not served; requests are: Produce, Fetch"):
            kafka.drop("Prduce")
        with pytest.raises(UsageError, match="delay_ms is -1; allowed are whole numbers from 0 to 2592000000"):
            kafka.delay(-1)

    run_virtual(main, topics={"orders": 1})


async def write_equal_records(kafka: Kafka) -> tuple[int, Verdict]:
    """Write the same record again and again until all brokers lose their power; return what is left and the verdict."""
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, acks="all", request_timeout_ms=3_000)
    await producer.start()
    while kafka.now_ms < 990:
        await producer.send_and_wait("orders", b"x", partition=0)
    await asyncio.sleep(20)
    left_count = len(kafka.records("orders", 0))
    for _ in range(20):  # In the place of lost ones, of which a consumer has read some.
        await producer.send_and_wait("orders", b"x", partition=0)
    await producer.stop()
    return left_count, kafka.verdict()


def test_a_record_is_lost_though_another_one_has_the_same_bytes() -> None:
    losses = tuple(Fault(TimeMs(1_000), FaultKind.POWER_LOSS, broker, DurationMs(2_000)) for broker in range(3))
    left_count, verdict = run_virtual(write_equal_records, topics={"orders": 1}, faults=losses)
    lost, acked_count = verdict.durability.lost_by_all, verdict.durability.acked_count
    assert len(lost) == acked_count - 20 - left_count > 0
    assert sorted(record.offset for record in lost) == list(range(left_count, acked_count - 20))


async def write_with_a_full_disk(kafka: Kafka) -> dict[str, Any]:
    """Fill the leader's disk while a producer writes, and make room again."""
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, acks="all", enable_idempotence=True)
    await producer.start()
    await producer.send_and_wait("orders", b"0", partition=0)
    full = kafka.leader("orders", 0)
    assert full is not None
    kafka.fill_disk(full)
    await asyncio.sleep(20)
    before = kafka.leader("orders", 0)
    for number in range(1, 20):
        await producer.send_and_wait("orders", b"%d" % number, partition=0)
    after, isr = kafka.leader("orders", 0), kafka.isr("orders", 0)
    kafka.restart(full)
    await asyncio.sleep(20)
    still = kafka.isr("orders", 0)
    kafka.heal()
    await asyncio.sleep(20)
    await producer.stop()
    values = [int(each.value or b"") for each in kafka.records("orders", 0)]
    return {
        "full": full,
        "leaders": (before, after),
        "isrs": [full in each for each in (isr, still, kafka.isr("orders", 0))],
        "values": values,
        "verdict": kafka.verdict(),
    }


def test_a_broker_whose_disk_is_full_leads_until_a_write_fails_and_comes_back_when_there_is_room() -> None:
    found = run_virtual(write_with_a_full_disk, seed=1, topics={"orders": 1})
    full = found["full"]
    before, after = found["leaders"]
    assert before == full
    assert after not in (full, None)
    assert found["isrs"] == [False, False, True]
    assert found["values"] == list(range(20))
    assert str(found["verdict"]) == "no invariant broken; 20 records acknowledged, 0 of them lost"


async def connect_to_isolated(kafka: Kafka) -> str:
    """Start a client whose only known broker has been isolated before."""
    await asyncio.sleep(5)
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers.split(",")[0], request_timeout_ms=2_000)
    try:
        await producer.start()
    except KafkaConnectionError as error:
        return type(error).__name__
    finally:
        await producer.stop()
    return "connected"


@pytest.mark.parametrize("kind", [FaultKind.ISOLATE, FaultKind.DEAF, FaultKind.MUTE])
def test_a_client_that_connects_later_reaches_no_isolated_broker(kind: FaultKind) -> None:
    fault = Fault(3_000, kind, broker=0, duration_ms=60_000)
    found = run_virtual(connect_to_isolated, seed=1, topics={"orders": 1}, faults=(fault,))
    assert found == "KafkaConnectionError"
    late = Fault(1_000, kind, broker=0, duration_ms=1_000)
    assert run_virtual(connect_to_isolated, seed=1, topics={"orders": 1}, faults=(late,)) == "connected"
