"""Read replica sizes and eligible leader replicas through kafka-python, as confluent-kafka cannot ask for them.

The library is optional: without it, and for certificates that it cannot take, a note says so. It logs in with the same
properties; its requests are Metadata, DescribeLogDirs and DescribeTopicPartitions, which change nothing.

Source: kafka-python 3.0; Kafka 4.4.0 tools LogDirsCommand (the shape of the sizes); KIP-966.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any, Final

from spark_analysis.live.client import BATCH, Asker
from spark_analysis.live.properties import ClientProperties

Eligible = dict[tuple[str, int], dict[str, list[int]]]
"""The `elr` and `last_known_elr` of partitions, by topic and number."""
_WHAT: Final = "sizes and eligible leader replicas"
ABSENT: Final = f"{_WHAT} are asked with kafka-python: pip install 'kafka-python>=3'; or --sizes FILE"
_NAMES: Final = {
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}
_CERTIFICATES: Final = ("ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem", "ssl.keystore.location")
_AT_ONCE: Final = 16  # Brokers that are asked at once, as one that is away is waited for.
_PAGE: Final = 2_000  # Partitions of one response, as the broker limits it.


def replicas_of(asker: Asker, topics: Sequence[str], brokers: Sequence[int]) -> tuple[Any, Eligible]:
    """Return the log directories in the form of kafka-log-dirs, None without an answer, and the eligible replicas."""
    try:
        from kafka import KafkaAdminClient
    except ImportError:
        asker.notes.append(ABSENT)
        return None, {}
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # What fails is said in a note.
    unknown = [name for name in _CERTIFICATES if name in asker.properties.options]
    if unknown:
        asker.notes.append(f"{_WHAT} were not asked: kafka-python does not take what {', '.join(unknown)} stands for")
        return None, {}
    timeout_ms = asker.properties.timeout_ms
    options = {**_options(asker.properties), "request_timeout_ms": timeout_ms, "bootstrap_timeout_ms": timeout_ms}
    made = partial(KafkaAdminClient, bootstrap_servers=asker.servers.split(","), **options)
    for _, admin in asker.answers(_WHAT, {"": made}):
        with closing(admin), ThreadPoolExecutor(_AT_ONCE) as pool:
            asked = {number: partial(pool.submit, _broker, admin, number) for number in brokers}
            sizes = [found for _, found in asker.each("DescribeLogDirs", asked)]
            return ({"version": 1, "brokers": sizes} if sizes else None), _eligible(asker, admin, topics)
    return None, {}


def _options(properties: ClientProperties) -> dict[str, Any]:
    options: dict[str, Any] = {_NAMES[name]: value for name, value in properties.options.items() if name in _NAMES}
    if properties.options.get("ssl.endpoint.identification.algorithm") == "none":
        options["ssl_check_hostname"] = False
    return {"client_id": "brokerside", **options}


def _broker(admin: Any, number: int) -> dict[str, Any]:
    """Return the log directories of a broker; raise PermissionError if the client may not describe them."""
    (found,) = admin.describe_log_dirs(brokers=[number])
    if not found["log_dirs"]:
        raise PermissionError("no log directory is shown without Describe on the cluster")
    return {"broker": number, "logDirs": [_directory(each) for each in found["log_dirs"]]}


def _directory(found: Mapping[str, Any]) -> dict[str, Any]:
    partitions = [
        {"partition": f"{topic['name']}-{each['partition_index']}", "size": each["partition_size"]}
        | {"offsetLag": each["offset_lag"], "isFuture": each["is_future_key"]}
        for topic in found["topics"]
        for each in topic["partitions"]
    ]
    error = f"error {found['error_code']}" if found["error_code"] else None
    return {"logDir": found["log_dir"], "error": error, "partitions": partitions}


def _eligible(asker: Asker, admin: Any, topics: Sequence[str]) -> Eligible:
    found: Eligible = {}
    for start in range(0, len(topics), BATCH):
        pages: Callable[[], list[Any]] = partial(list, _pages(admin, topics[start : start + BATCH]))
        for _, rows in asker.answers("DescribeTopicPartitions", {"": pages}):
            found |= _rows(rows)
    return found


def _pages(admin: Any, topics: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    cursor = None
    while True:
        page = admin.describe_topic_partitions(list(topics), response_partition_limit=_PAGE, cursor=cursor)
        yield from page["topics"]
        if page["next_cursor"] in (None, cursor):
            return
        cursor = page["next_cursor"]


def _rows(topics: Iterable[Mapping[str, Any]]) -> Eligible:
    return {
        (topic["name"], each["partition_index"]): {
            "elr": each["eligible_leader_replicas"] or [],
            "last_known_elr": each["last_known_elr"] or [],
        }
        for topic in topics
        for each in topic["partitions"]
    }
