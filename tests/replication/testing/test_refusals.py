"""What a cluster cannot be, and what cannot be done to one, is refused in one sentence that names the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from broker.cluster import ClusterView
from broker.errors import UsageError
from replication.simulation.fault import Fault
from replication.simulation.options import FaultKind
from replication.testing import ClusterSpec, Kafka, TopicSpec, kafka_cluster
from replication.testing.served_cluster import ServedCluster

WHOLE = "allowed are whole numbers from"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"replicas": ()}, "a topic has no partition; 1 or more are allowed"),
        ({"replicas": "abc"}, "replicas are 'abc'; wanted is a tuple"),
        ({"replicas": ((0, 1, 1),)}, "partition 0: the list of replicas names broker 1 twice"),
        ({"replicas": ((0,), ())}, "partition 1: the list of replicas is empty"),
        (
            {"replicas": (("a",),)},
            f"partition 0: a broker id in the list of replicas is the text 'a'; {WHOLE} 0 to 2147483647",
        ),
        ({"replicas": ((0,), (1,)), "leaders": (0,)}, "1 leader of 2 partitions; wanted is one each"),
        ({"replicas": ((0,),), "leaders": (0, 0)}, "2 leaders of 1 partition; wanted is one each"),
        ({"replicas": ((0, 1),), "leaders": (2,)}, "partition 0: Leader 2 is no replica (0,1)"),
        (
            {"replicas": ((0,),), "configs": {"retention": "1"}},
            "Unknown topic config name: retention",
        ),
        (
            {"replicas": ((0,),), "configs": {"retention.ms": "soon"}},
            f"retention.ms is soon; {WHOLE} -1 to 9223372036854775807",
        ),
        (
            {"replicas": ((0,),), "configs": {"retention.ms": 1}},
            "the setting 'retention.ms' is 1; names and values are texts, such as '1000'",
        ),
        (
            {"replicas": ((0,),), "configs": "a=b"},
            "configs are 'a=b'; wanted are texts by name, such as {'retention.ms': '1000'}",
        ),
    ],
)
def test_a_topic_that_cannot_be_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        TopicSpec(**given)
    assert str(refused.value) == words


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"brokers": -1}, f"brokers is -1; {WHOLE} 1 to 100"),
        ({"brokers": "3"}, f"brokers is the text '3'; {WHOLE} 1 to 100"),
        ({"brokers": True}, f"brokers is true; {WHOLE} 1 to 100"),
        ({"seed": "a"}, f"seed is the text 'a'; {WHOLE} 0 to 9223372036854775807"),
        ({"factor": 4}, f"factor is 4; {WHOLE} 0 to 3"),
        ({"min_insync_replicas": 4}, f"min_insync_replicas is 4; {WHOLE} 0 to 3"),
        ({"default_partitions": 0}, f"default_partitions is 0; {WHOLE} 1 to 1000"),
        ({"auto_create": "no"}, "auto_create is 'no'; allowed are True and False"),
        ({"down": 5}, "down is 5; wanted is a set of brokers, such as {0, 1}"),
        ({"wall_clock_ms": "now"}, f"wall_clock_ms is the text 'now'; {WHOLE} 0 to 9223372036854775807"),
        ({"down": {7}}, "down names broker 7; brokers are 0 to 2"),
        ({"down": {1}}, "1 of 3 brokers are down, and the replication factor is 3"),
        ({"racks": "abc"}, "racks are 'abc'; wanted is a tuple"),
        ({"racks": ("a", "")}, "a rack is ''; wanted is a name, or None for a broker without one"),
        ({"racks": tuple("abcd")}, "there are 4 racks for 3 brokers; at most as many racks as brokers are allowed"),
        ({"ports": (9_092,)}, "1 port of 3 brokers; wanted is one each"),
        ({"ports": (1, 2, 70_000)}, f"a port is 70000; {WHOLE} 0 to 65535"),
        ({"topics": "3"}, "topics are '3'; wanted are numbers of partitions by name, such as {'orders': 6}"),
        ({"topics": ["a"]}, "topics are ['a']; wanted are numbers of partitions by name, such as {'orders': 6}"),
        (
            {"topics": {"a b": 1}},
            "topic 'a b': illegal topic name; allowed are letters, digits, '.', '_' and '-', but not '.' or '..'",
        ),
        (
            {"topics": {"t" * 250: 1}},
            f"topic '{'t' * 250}': the topic name has 250 characters; at most 249 are allowed",
        ),
        ({"topics": {"t": 0}}, f"the number of partitions of topic 't' is 0; {WHOLE} 1 to 1000"),
        ({"topics": {"t": "3"}}, f"the number of partitions of topic 't' is the text '3'; {WHOLE} 1 to 1000"),
        ({"topics": {"t": 1_001}}, f"the number of partitions of topic 't' is 1001; {WHOLE} 1 to 1000"),
        (
            {"topics": {"t": 500, "u": 500}},
            "there are 1,004 partitions with those of __consumer_offsets; at most 1,000 are served",
        ),
        (
            {"topics": {"t": TopicSpec(((0, 1), (1, 3)))}},  # type: ignore[arg-type]  # What is refused.
            "partition 1 of topic 't' has a replica on broker 3; brokers are 0 to 2",
        ),
        (
            {"faults": (Fault(5, FaultKind.KILL, broker=3),)},
            "KILL strikes broker 3; the cluster has brokers 0 to 2",
        ),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        ClusterSpec(**given)
    assert str(refused.value) == words


@pytest.mark.parametrize(
    ("like", "shown"),
    [("mine.txt", "'mine.txt'"), (["a"], "of type list"), (3, "of type int")],
)
def test_only_a_view_is_something_to_be_like(like: Any, shown: str) -> None:
    with pytest.raises(UsageError) as refused, kafka_cluster(like=like):
        pass
    way = "`(view,) = read_dump([path.read_bytes()], source='prod').clusters` makes one of a dump"
    assert str(refused.value) == f"like is {shown}; wanted is a ClusterView, as {way}"


@pytest.mark.parametrize(("name", "value"), [("brokers", 3), ("racks", ("a",))])
def test_what_the_cluster_decides_that_is_served_like_is_refused_beside_it(name: str, value: Any) -> None:
    view = ClusterView(name="prod", source="prod", format="describe", brokers=(), topics=())
    with pytest.raises(UsageError) as refused, kafka_cluster(like=view, **{name: value}):
        pass
    assert str(refused.value) == f"{name} is decided by the cluster that is served like; leave it out"


@pytest.fixture(scope="module")
def kafka() -> Kafka:
    served = ServedCluster(ClusterSpec(topics={"orders": 3}))
    served.begin()
    return Kafka(served, lambda action: action())


SUCH = "such as partition({0}, {1, 2})"
BROKERS = "brokers are 0 to 2"
PARTITIONS = "its partitions are 0 to 2"
DONE: list[tuple[Callable[[Any], Any], str]] = [
    (lambda kafka: kafka.drop("Produce", 0), f"count is 0; {WHOLE} 1 to 2147483647"),
    (lambda kafka: kafka.drop("Produce", -1), f"count is -1; {WHOLE} 1 to 2147483647"),
    (lambda kafka: kafka.drop("Produce", "a"), f"count is the text 'a'; {WHOLE} 1 to 2147483647"),
    (lambda kafka: kafka.delay(-1), f"delay_ms is -1; {WHOLE} 0 to 2592000000"),
    (lambda kafka: kafka.kill("1"), f"there is no broker '1'; {BROKERS}"),
    (lambda kafka: kafka.kill(True), f"there is no broker True; {BROKERS}"),
    (lambda kafka: kafka.pause(1.0), f"there is no broker 1.0; {BROKERS}"),
    (lambda kafka: kafka.resume(9), f"there is no broker 9; {BROKERS}"),
    (lambda kafka: kafka.restart([1]), f"there is no broker [1]; {BROKERS}"),
    (lambda kafka: kafka.fill_disk(-1), f"there is no broker -1; {BROKERS}"),
    (lambda kafka: kafka.leader("orders", 9), f"there is no partition 9 of topic 'orders'; {PARTITIONS}"),
    (lambda kafka: kafka.leader("orders", -1), f"there is no partition -1 of topic 'orders'; {PARTITIONS}"),
    (lambda kafka: kafka.isr("orders", "0"), f"there is no partition '0' of topic 'orders'; {PARTITIONS}"),
    (lambda kafka: kafka.records("orders", True), f"there is no partition True of topic 'orders'; {PARTITIONS}"),
    (lambda kafka: kafka.replicas("audit", 0), "there is no topic 'audit'; topics are: orders"),
    (lambda kafka: kafka.kill_leader(["orders"], 0), "there is no topic ['orders']; topics are: orders"),
    (lambda kafka: kafka.partition(), f"0 groups of brokers cannot be cut apart; give two or more, {SUCH}"),
    (lambda kafka: kafka.partition({1}), f"1 group of brokers cannot be cut apart; give two or more, {SUCH}"),
    (lambda kafka: kafka.partition(1, 2), f"a group of brokers is 1; wanted are sets of brokers, {SUCH}"),
    (lambda kafka: kafka.partition({1}, set()), f"a group of brokers is set(); wanted are sets of brokers, {SUCH}"),
    (lambda kafka: kafka.partition({1}, {1, 2}), f"broker 1 is in two groups; each broker is in one at most, {SUCH}"),
    (lambda kafka: kafka.partition({1}, {"2"}), f"there is no broker '2'; {BROKERS}"),
]


@pytest.mark.parametrize(("act", "words"), DONE, ids=[words for _, words in DONE])
def test_what_cannot_be_done_to_a_cluster_is_refused(kafka: Kafka, act: Callable[[Kafka], Any], words: str) -> None:
    before = kafka.lines
    with pytest.raises(UsageError) as refused:
        act(kafka)
    assert str(refused.value) == words
    assert kafka.lines == before
