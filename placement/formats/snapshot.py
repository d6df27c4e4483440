"""Read the JSON of `brokerside snapshot`: what a live cluster says of itself at one moment.

It is what `kcat -L -J` prints, with keys added for what that lacks; any of them may be missing or null:

    {"brokerside_snapshot": 1, "taken_at": "2026-11-29T01:30:00Z", "cluster_id": "abc", "controllerid": 1,
     "originating_broker": {"id": -1, "name": "b1:9092"}, "query": {"topic": "*"},
     "brokers": [{"id": 1, "name": "b1:9092", "rack": "a", "configs": CONFIGS}],
     "topics": [{"topic": "orders", "configs": CONFIGS, "partitions": [
         {"partition": 0, "leader": 1, "replicas": [{"id": 1}, {"id": 2}], "isrs": [{"id": 1}],
          "elr": [2], "last_known_elr": []}]}],
     "log_dirs": what kafka-log-dirs --describe prints as JSON,
     "groups": see snapshot_groups,
     "notes": ["broker 2 did not answer DescribeLogDirs"]}

CONFIGS are the answers of DescribeConfigs by name, {"min.insync.replicas": {"value": "2", "source":
"DYNAMIC_TOPIC_CONFIG"}}, with Kafka's names of sources. A broker that is listed is alive. One that holds replicas and
is not listed is fenced or not registered; which of the two, the protocol does not say, and it counts as fenced.

Source: ours; edenhill/kcat json.c, Kafka 4.4.0 clients Metadata, DescribeConfigs, DescribeTopicPartitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from broker.cluster import BrokerView, ClusterView, Int32Array, MinIsrSource, SettingsShown, TopicView
from broker.liveness import Liveness
from broker.min_isr import MIN_ISR, min_isr
from placement.formats.documents import Documents, plain
from placement.formats.kcat import is_kcat, read_kcat
from placement.formats.parsed import ParsedDump, first_few
from placement.formats.rows import padded
from placement.formats.sizes import sizes_of_log_dirs

FORMAT: Final = "brokerside-snapshot"
VERSION_KEY: Final = "brokerside_snapshot"
VERSION: Final = 1
UNCLEAN: Final = "unclean.leader.election.enable"
DEFAULT_CONFIG: Final = "DEFAULT_CONFIG"
VALUE_LENGTH_MAX: Final = 1 << 16  # A list of throttled replicas may be long.
_SOURCES: Final = {
    "DYNAMIC_TOPIC_CONFIG": MinIsrSource.TOPIC,
    "DYNAMIC_BROKER_CONFIG": MinIsrSource.BROKER_DEFAULT,
    "STATIC_BROKER_CONFIG": MinIsrSource.BROKER_DEFAULT,
    "DYNAMIC_DEFAULT_BROKER_CONFIG": MinIsrSource.CLUSTER_DEFAULT,
    DEFAULT_CONFIG: MinIsrSource.KAFKA_DEFAULT,
}


def is_snapshot(value: Mapping[str, Any]) -> bool:
    """Return whether an object is the document of `brokerside snapshot`."""
    return VERSION_KEY in value and is_kcat(dict(value))


def read_snapshot(found: Documents, *, source: str, name: str) -> ParsedDump:
    """Return the cluster of a snapshot; raise InputError if no part of it can be used."""
    value = found.documents[0].value
    parsed = read_kcat(found, source=source, name=name)
    (view,) = parsed.clusters
    topics = _by_key(value["topics"], "topic")
    settings = {name: _configs(topic.get("configs")) for name, topic in topics.items()}
    stated = [*_facts(value), *view.facts]
    notes = [plain(note) for note in _items(value.get("notes")) if plain(note)]
    table = attrs.evolve(view.partitions, elr=_elr(view, topics, "elr"), last_known_elr=_elr(view, topics, LAST_KNOWN))
    view = attrs.evolve(
        view,
        format=FORMAT,
        brokers=tuple(_brokers(view, _by_key(value.get("brokers"), "id"))),
        topics=tuple(_topic(topic, topics.get(topic.name, {}), settings.get(topic.name)) for topic in view.topics),
        partitions=table,
        settings_shown=SettingsShown.NONE if None in settings.values() else SettingsShown.EFFECTIVE,
        facts=tuple(stated),
        notes=(*view.notes, *first_few([note for note in notes if note is not None])),
    )
    return _with_sizes(attrs.evolve(parsed, format=FORMAT, clusters=(view,)), value.get("log_dirs"))


LAST_KNOWN: Final = "last_known_elr"


def _with_sizes(parsed: ParsedDump, log_dirs: Any) -> ParsedDump:
    """Return the dump with the sizes of its replicas, and the account of both."""
    if not isinstance(log_dirs, dict):
        return parsed
    sizes = sizes_of_log_dirs(log_dirs, source=parsed.source)
    (view,) = parsed.clusters
    if sizes is None or not sizes.measures(view):
        return parsed
    account = sizes.account
    return attrs.evolve(
        parsed,
        clusters=(sizes.apply(view),),
        rejects=(*parsed.rejects, *account.rejects),
        rows_in=parsed.rows_in + account.rows_in,
        rows_analysed=parsed.rows_analysed + account.rows_analysed,
        rows_rejected=parsed.rows_rejected + account.rows_rejected,
    )


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _by_key(value: Any, key: str) -> dict[Any, dict[str, Any]]:
    """Return the objects of a list by one of their values, the first of equal ones."""
    found: dict[Any, dict[str, Any]] = {}
    for item in _items(value):
        if isinstance(item, dict) and isinstance(item.get(key), str | int):
            found.setdefault(item[key], item)
    return found


def _brokers(view: ClusterView, listed: Mapping[Any, dict[str, Any]]) -> Iterator[BrokerView]:
    for broker in view.brokers:
        item = listed.get(int(broker.id))
        if item is not None:
            yield attrs.evolve(broker, rack=plain(item.get("rack")), stated=Liveness.ALIVE)
        else:
            yield attrs.evolve(broker, fenced=bool(listed))


def _configs(value: Any) -> dict[str, tuple[str, str]] | None:
    """Return value and source of each setting; None where none were read."""
    if not isinstance(value, dict):
        return None
    found = {}
    for name, entry in value.items():
        item = entry if isinstance(entry, dict) else {}
        text = item.get("value")
        if isinstance(text, str):
            shown = text[:VALUE_LENGTH_MAX].encode("utf-8", "backslashreplace").decode("utf-8")
            found[name] = (shown, str(item.get("source")))
    return found


def _topic(topic: TopicView, item: Mapping[str, Any], settings: Mapping[str, tuple[str, str]] | None) -> TopicView:
    partitions = _items(item.get("partitions"))
    topic = attrs.evolve(topic, partition_count=len(partitions), topic_id=plain(item.get("topic_id")))
    if settings is None:
        return topic
    text, source = settings.get(MIN_ISR, (None, ""))
    own = {name: value for name, (value, origin) in settings.items() if origin != DEFAULT_CONFIG}
    return attrs.evolve(
        topic,
        min_insync_replicas=min_isr(topic=text).count,
        stated_source=_SOURCES.get(source),
        configs=tuple(sorted(own.items())),
    )


def _elr(view: ClusterView, topics: Mapping[Any, dict[str, Any]], key: str) -> Int32Array | None:
    """Return the eligible leader replicas of each partition, int32[P, any width]; None where no partition has any."""
    lists: dict[tuple[str, Any], Any] = {
        (name, item.get("partition")): item[key]
        for name, topic in topics.items()
        for item in _items(topic.get("partitions"))
        if isinstance(item, dict) and isinstance(item.get(key), list)
    }
    if not lists:
        return None
    table, rows = view.partitions, list[tuple[int, ...]]()
    places = zip(table.topic_index.tolist(), table.partition_ids.tolist(), table.replicas.tolist(), strict=True)
    for topic_index, partition, replicas in places:
        given = lists.get((view.topics[topic_index].name, partition), ())
        rows.append(tuple(broker for broker in replicas if broker >= 0 and broker in given))
    return padded(rows)


def _facts(value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, key in (("cluster id", "cluster_id"), ("taken at", "taken_at")):
        text = plain(value.get(key))
        if text is not None:
            yield name, text
    brokers = _by_key(value.get("brokers"), "id")
    for setting in (MIN_ISR, UNCLEAN):
        by_value: dict[str, list[str]] = {}
        for number, broker in sorted(brokers.items(), key=lambda pair: str(pair[0])):
            found = (_configs(broker.get("configs")) or {}).get(setting)
            if found is not None:
                by_value.setdefault(found[0], []).append(str(number))
        for text, numbers in by_value.items():
            where = "of the brokers" if len(by_value) == 1 else f"of broker {', '.join(numbers)}"
            yield f"{setting} {where}", text
