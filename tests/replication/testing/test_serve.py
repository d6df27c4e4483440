"""`brokerside serve` reads topics and faults in words, serves until it is told to stop, and says its verdict."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys

import pytest
from aiokafka import AIOKafkaProducer
from click.testing import CliRunner

from broker.errors import UsageError
from replication.simulation.options import FaultKind
from replication.testing.cli import serve
from replication.testing.serve_options import read_fault, read_topic


@pytest.mark.parametrize(("text", "topic"), [("orders:6", ("orders", 6)), ("a.b-c_d", ("a.b-c_d", 1))])
def test_a_topic_is_read(text: str, topic: tuple[str, int]) -> None:
    assert read_topic(text) == topic


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a b", "topic 'a b' has a name that Kafka does not allow"),
        ("..", "topic '..' has a name that Kafka does not allow"),
        ("t:0", "topic 't' is to have '0' partitions; allowed are whole numbers from 1 to 1000"),
        ("t:many", "topic 't' is to have 'many' partitions"),
        ("t:²", "topic 't' is to have '²' partitions"),
    ],
)
def test_a_topic_that_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_topic(text)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("text", "kind", "broker", "times_ms"),
    [
        ("kill 2 at 30s for 10s", FaultKind.KILL, 2, (30_000, 10_000)),
        ("power-loss 0 at 500ms for 1m", FaultKind.POWER_LOSS, 0, (500, 60_000)),
        ("pause 1 at 2m", FaultKind.PAUSE, 1, (120_000, 10_000)),
        ("controller-failover at 5s", FaultKind.CONTROLLER_FAILOVER, 0, (5_000, 10_000)),
    ],
)
def test_a_fault_is_read(text: str, kind: FaultKind, broker: int, times_ms: tuple[int, int]) -> None:
    fault = read_fault(text)
    assert (fault.kind, fault.target) == (kind, broker)
    assert str(times_ms[0]) in str(fault)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kil 2 at 3s", "there is no 'kil'; faults are kill, power-loss"),
        ("kill at 3s", "kill strikes a broker"),
        ("controller-away 1 at 3s", "controller-away strikes no broker"),
        ("kill 2", "is not understood; write for example 'kill 2 at 30s for 10s'"),
        ("kill -1 at 3s", "is not understood"),
        ("kill 1 at 3s for 0s", "fault 'kill 1 at 3s for 0s' lasts 0 ms; 1 ms or more is allowed"),
        ("kill 1 at 43200m", "fault 'kill 1 at 43200m' ends after 30 days, which is as long as a cluster runs"),
    ],
)
def test_a_fault_that_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_fault(text)
    assert words in str(refused.value)


def test_the_kinds_of_faults_are_explained_by_the_names_that_are_read() -> None:
    head, *rows = CliRunner().invoke(serve, ["--fault-kinds"]).output.splitlines()
    assert head.split() == ["kind", "strikes", "what", "happens"]
    assert len(rows) > 15
    for row in rows:
        name, strikes, what = row.split(maxsplit=2)
        fault = read_fault(f"{name} {'1 ' if strikes == 'broker' else ''}at 3s")
        assert fault.kind.value == what


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--topic orders:2 --topic orders:3", "topic 'orders' is given twice"),
        ("--racks a,b,c,d", "there are 4 racks for 3 brokers; at most as many racks as brokers are allowed"),
        ("--racks ,", "a rack is ''; wanted is a name, or None for a broker without one"),
        ("--from a.txt --from b.txt", "--from is given 2 times; give it once"),
        ("--from a.txt --racks a,b", "--racks 'a,b' is no file; with --from a file is wanted"),
        ("--topic a:999", "there are 1,003 partitions with those of __consumer_offsets; at most 1,000 are served"),
        ("--min-insync-replicas 4", "--min-insync-replicas is 4, for 3 replicas; allowed are 1 to 3"),
        ("--replication-factor 5", "--replication-factor is 5, for 3 brokers; allowed are 1 to 3"),
        ("--racks nofile.csv", "--racks 'nofile.csv' is a file, which is read with --from alone; write racks as a,b,c"),
    ],
)
def test_options_that_cannot_be_are_refused_with_one_sentence_and_status_2(arguments: str, words: str) -> None:
    command = [sys.executable, "-m", "spark_analysis", "serve", "--port", "0", *arguments.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.stderr
    assert words in done.stderr


def test_a_served_cluster_takes_writes_and_says_its_verdict() -> None:
    command = [sys.executable, "-m", "spark_analysis", "serve", "--topic", "orders:2", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())

        async def write() -> None:
            producer = AIOKafkaProducer(bootstrap_servers=ready["bootstrap_servers"], acks="all")
            await producer.start()
            for number in range(5):
                await producer.send_and_wait("orders", b"%d" % number)
            await producer.stop()

        asyncio.run(write())
        process.send_signal(signal.SIGINT)
        verdict = json.loads(process.stdout.readline())
    assert process.returncode == 0
    assert verdict["findings"] == []
    assert (verdict["acknowledged_by_all"], verdict["lost_by_all"]) == (5, 0)


def test_faults_are_reported_and_counted_and_a_second_signal_keeps_the_verdict() -> None:
    """Broker 1 is down when it is to be killed again; the last fault is due after the end."""
    command = [sys.executable, "-m", "spark_analysis", "serve", "--port", "0", "--json"]
    for fault in ("kill 1 at 5s for 1s", "kill 1 at 5500ms for 1s", "slow 2 at 5500ms for 1s", "kill 0 at 9m"):
        command += ["--fault", fault]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(6)]
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGHUP)
        verdict = json.loads(process.stdout.readline())
    assert [each["event"] for each in lines] == ["ready", *["fault"] * 5]
    assert [(each["at_ms"], each["kind"], each["broker"], each["state"]) for each in lines[1:]] == [
        (5_000, "kill", 1, "struck"),
        (5_500, "kill", 1, "no_effect"),
        (5_500, "slow", 2, "struck"),
        (6_000, "kill", 1, "over"),
        (6_500, "slow", 2, "over"),
    ]
    assert (process.returncode, verdict["event"], verdict["is_broken"]) == (0, "verdict", False)
    assert (verdict["faults"], verdict["faults_struck"]) == (4, 2)


def test_the_verdict_counts_the_faults_that_struck() -> None:
    command = [sys.executable, "-m", "spark_analysis", "serve", "--port", "0"]
    for fault in ("kill 1 at 5s", "kill 0 at 9m"):
        command += ["--fault", fault]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGHUP)
        verdict = process.stdout.read()
    assert lines[2] == "     5000 ms  the fault strikes: at 5000 ms KILL broker 1 for 10000 ms\n"
    assert verdict == "\nnothing is broken; no record acknowledged by all; 1 of 2 faults struck, 1 never did\n"


def test_the_fixture_serves_and_checks_a_cluster(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest
        from replication.checkers import Finding

        def test_two_clusters(kafka_cluster):
            one, other = kafka_cluster(topics={"orders": 2}), kafka_cluster(brokers=1)
            assert one.bootstrap_servers.count(",") == 2
            assert len(one.isr("orders", 1)) == 3

        def test_that_breaks_an_invariant(kafka_cluster):
            kafka = kafka_cluster(seed=7)
            kafka.kill(1)
            kafka._served.simulation.checker.findings.append(Finding("I1", 5, 0, "made up"))
    """)
    result = pytester.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["*made up*; in real time seed=7 alone replays no run, and done was: at * ms broker 1 is killed"]
    )
