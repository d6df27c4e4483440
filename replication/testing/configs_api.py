"""Serve DescribeConfigs and IncrementalAlterConfigs of topics, brokers and groups.

Altered settings are kept with the topic, or by the name of the broker ("" for all). min.insync.replicas and
unclean.leader.election.enable go to the controller, what a log reads to the logs; the others are stored and shown.

Source: Kafka core ConfigHelper, ConfigAdminManager, DynamicBrokerConfig; metadata ConfigurationControlManager; 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from broker.config import Scope, Settings
from broker.config.catalog import Row, rows
from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.releases import NEWEST
from replication.roles.messages import CONTROLLER, Address, AlterConfigs, ConfigRecord
from replication.roles.outbox import Outbox
from replication.testing.gateway import Call, Gateway, Values
from replication.testing.topics import is_legal_name

TOPIC: Final = 2
BROKER: Final = 4
GROUP: Final = 32
_SCOPES: Final = {TOPIC: Scope.TOPIC, BROKER: Scope.BROKER, GROUP: Scope.GROUP}
_SOURCES: Final = {TOPIC: 1, GROUP: 8}
_DYNAMIC_BROKER, _DYNAMIC_ALL, _STATIC, _DEFAULT = 2, 3, 4, 5
_TYPES: Final = {"BOOLEAN": 1, "STRING": 2, "INT": 3, "SHORT": 4, "LONG": 5, "DOUBLE": 6, "LIST": 7, "CLASS": 8}
_PASSWORD: Final = 9
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_OF_RETENTION: Final = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
"""The one setting of brokers that has synonyms which are shown."""
_MIN_ISR: Final = "min.insync.replicas"
_UNCLEAN: Final = "unclean.leader.election.enable"

Refused = tuple[ErrorCode, str | None]


@cache
def named(scope: Scope) -> Mapping[str, Row]:
    """Return every setting of a scope in the newest release by name, with those that no model reads."""
    listed = [row for row in rows() if row.scope == scope.value and NEWEST.name in row.releases.split()]
    return {row.name: row for row in listed}


def _default(row: Row) -> str | None:
    return None if row.default in ("null", "required") else row.default


def _given_by(gateway: Gateway, kind: int, name: str) -> Mapping[str, str]:
    """Return the altered settings of a topic, broker or group."""
    if kind == TOPIC:
        topic = gateway.topics.get(name)
        return {} if topic is None else dict(topic.configs)
    return gateway.shared.altered.get((kind, name), {})


def _of_brokers(gateway: Gateway, names: tuple[str, ...]) -> list[Values]:
    """Return the values of a broker's setting and its synonyms, the one in force first."""
    own, settings = str(gateway.broker.broker), named(Scope.BROKER)
    sources = (
        (_given_by(gateway, BROKER, own), _DYNAMIC_BROKER),
        (_given_by(gateway, BROKER, ""), _DYNAMIC_ALL),
        (gateway.static_configs, _STATIC),
        ({name: _default(settings[name]) for name in names if name in settings}, _DEFAULT),
    )
    return [
        {"name": name, "value": values[name], "source": source}
        for values, source in sources
        for name in names
        if values.get(name) is not None
    ]


def _synonyms(name: str) -> tuple[str, ...]:
    """Return the broker's settings that say the same as a broker's setting, itself among them."""
    return _OF_RETENTION if name == _OF_RETENTION[0] else (name,)


# DescribeConfigs.


def describe_configs(call: Call, out: Outbox) -> None:
    """Show the settings of topics, brokers and groups, with where each value comes from."""
    body = call.request.body
    results = []
    for each in body.resources:
        error, message = _describable(call.gateway, each.resource_type, each.resource_name)
        configs = [] if error is not ErrorCode.NONE else list(_described(call, each))
        kept = {"resource_type": each.resource_type, "resource_name": each.resource_name, "configs": configs}
        results.append({**kept, "error_code": error, "error_message": message})
    call.answer({"results": results}, out)


def _describable(gateway: Gateway, kind: int, name: str) -> Refused:
    if kind == TOPIC:
        return _topic_error(gateway, name)
    if kind == BROKER:
        if name in ("", str(gateway.broker.broker)):
            return ErrorCode.NONE, None
        what = f"Unexpected broker id, expected {gateway.broker.broker} or empty string, but received {name}"
        return ErrorCode.INVALID_REQUEST, what
    if kind == GROUP:
        return (ErrorCode.NONE, None) if name else (ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    return ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}"


def _topic_error(gateway: Gateway, name: str) -> Refused:
    if not is_legal_name(name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: '{name}'"
    if gateway.topics.get(name) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    return ErrorCode.NONE, None


def _described(call: Call, resource: Any) -> Iterator[Values]:
    body, gateway = call.request.body, call.gateway
    kind, name = resource.resource_type, resource.resource_name
    wanted, given = resource.configuration_keys, _given_by(gateway, kind, name)
    for row in named(_SCOPES[kind]).values():
        if wanted and row.name not in wanted:
            continue
        values = _values(gateway, kind, given, row)
        if kind == BROKER and not name:
            values = [each for each in values if each["source"] == _DYNAMIC_ALL]
            if not values:
                continue
        shown = _entry(row, values, is_read_only=kind == BROKER and not row.update)
        if row.internal == "true" and shown["value"] is None:
            continue
        yield {
            **shown,
            "synonyms": values if getattr(body, "include_synonyms", False) else [],
            "documentation": row.sentence if getattr(body, "include_documentation", False) else None,
        }


def _values(gateway: Gateway, kind: int, given: Mapping[str, str], row: Row) -> list[Values]:
    """Return the values of a setting and its synonyms, the one in force first."""
    if kind == BROKER:
        return _of_brokers(gateway, _synonyms(row.name))
    own = given.get(row.name)
    first: list[Values] = [] if own is None else [{"name": row.name, "value": own, "source": _SOURCES[kind]}]
    return first + (_of_brokers(gateway, _synonyms(row.synonyms.split(",")[0])) if row.synonyms else [])


def _entry(row: Row, values: list[Values], *, is_read_only: bool) -> dict[str, object]:
    is_secret = row.type == "PASSWORD"
    return {
        "name": row.name,
        "value": None if is_secret else _effective(row, values),
        "read_only": is_read_only,
        "config_source": values[0]["source"] if values else _DEFAULT,
        "is_sensitive": is_secret,
        "config_type": _TYPES.get(row.type, _PASSWORD),
    }


def _effective(row: Row, values: list[Values]) -> object:
    """Return the value in force: of a synonym in hours or minutes, as many ms."""
    if not values:
        return _default(row)
    first, value = str(values[0]["name"]), values[0]["value"]
    if row.scope == Scope.BROKER.value:
        return next((each["value"] for each in values if each["name"] == row.name), _default(row))
    factor = next((ms for ending, ms in ((".hours", 3_600_000), (".minutes", 60_000)) if first.endswith(ending)), 1)
    return value if factor == 1 else str(int(str(value)) * factor)


def topic_entries(gateway: Gateway, given: Mapping[str, str]) -> list[Values]:
    """Return the settings of a topic as CreateTopics shows them."""
    found = [(row, _values(gateway, TOPIC, given, row)) for row in named(Scope.TOPIC).values()]
    entries = [_entry(row, values, is_read_only=False) for row, values in found]
    return [each for each in entries if each["value"] is not None]


# IncrementalAlterConfigs.


def incremental_alter_configs(call: Call, out: Outbox) -> None:
    """Alter single settings of topics, brokers and groups; each resource is refused by itself."""
    body, gateway = call.request.body, call.gateway
    places = [(each.resource_type, each.resource_name) for each in body.resources]
    results = []
    for each in body.resources:
        place = each.resource_type, each.resource_name
        given: dict[str, str] = {}
        error, message = ErrorCode.NONE, None
        if places.count(place) > 1:
            error, message = ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."
        elif place[0] not in _SCOPES:
            error, message = ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {place[0]}"
        else:
            given = dict(_given_by(gateway, *place))
            error, message = _change(each, given)
            error, message = _alterable(gateway, *place) if error is ErrorCode.NONE else (error, message)
        if error is ErrorCode.NONE and not body.validate_only:
            take(gateway, place, given, out)
        kept = {"resource_type": each.resource_type, "resource_name": each.resource_name}
        results.append({**kept, "error_code": error, "error_message": message})
    call.answer({"responses": results}, out)


def _alterable(gateway: Gateway, kind: int, name: str) -> Refused:
    if kind == BROKER and name not in ("", *map(str, gateway.shared.endpoints)):
        return ErrorCode.INVALID_REQUEST, f"No such broker as {name}"
    return (ErrorCode.NONE, None) if kind == BROKER else _describable(gateway, kind, name)


def _change(resource: Any, given: dict[str, str]) -> Refused:
    """Carry out the operations on one resource's settings; return the error of the first that is refused."""
    scope = _SCOPES[resource.resource_type]
    names = [each.name for each in resource.configs]
    if len(set(names)) < len(names):
        return ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys"
    for each in resource.configs:
        row = named(scope).get(each.name)
        if each.value is None and each.config_operation != _DELETE:
            return ErrorCode.INVALID_REQUEST, f"Null value not supported for : {each.name}"
        if each.config_operation == _DELETE:
            given.pop(each.name, None)
        elif each.config_operation == _SET:
            given[each.name] = each.value
        elif each.config_operation in (_APPEND, _SUBTRACT):
            if row is None or row.type != "LIST":
                return ErrorCode.INVALID_CONFIG, f"{each.name} is not a list: no item is added or removed"
            given[each.name] = _listed(given.get(each.name, _default(row) or ""), each)
        else:
            return ErrorCode.INVALID_REQUEST, f"Unknown operation type {each.config_operation}"
    return check(scope, given)


def _listed(before: str, each: Any) -> str:
    items, changed = [item for item in before.split(",") if item], each.value.split(",")
    if each.config_operation == _APPEND:
        return ",".join([*items, *(item for item in changed if item not in items)])
    return ",".join(item for item in items if item not in changed)


def check(scope: Scope, given: Mapping[str, str]) -> Refused:
    """Return INVALID_CONFIG for a setting that there is not, or a value that it does not take."""
    unknown = sorted(given.keys() - named(scope).keys())
    if unknown and scope is not Scope.BROKER:
        return ErrorCode.INVALID_CONFIG, f"Unknown {scope.value} config name: {unknown[0]}"
    fixed = sorted(name for name in given.keys() & named(scope).keys() if not named(scope)[name].update)
    if scope is Scope.BROKER and fixed:
        return ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: {', '.join(fixed)}"
    try:
        _settings(scope, given)
    except UsageError as wrong:
        return ErrorCode.INVALID_CONFIG, str(wrong)
    return ErrorCode.NONE, None


def _settings(scope: Scope, given: Mapping[str, str]) -> Settings:
    """Return the settings that a model reads, out of those given."""
    known = {name: text for name, text in given.items() if name in named(scope) and not named(scope)[name].left_out}
    return Settings.parse(scope, known)


def take(gateway: Gateway, place: tuple[int, str], given: Mapping[str, str], out: Outbox) -> None:
    """Keep the settings of a topic, broker or group; the model applies those of replication."""
    kind, name = place
    if kind != TOPIC:
        gateway.shared.altered[place] = dict(given)
        return
    topic = gateway.topics.configure(name, given)
    configure(gateway, topic.numbers, given, out)


def configure(gateway: Gateway, numbers: tuple[int, ...], given: Mapping[str, str], out: Outbox) -> None:
    """Let the settings of a topic take effect on partitions of it."""
    for record in records(numbers, given):
        if record != gateway.broker.image.configs.get(record.partition, ConfigRecord(record.partition)):
            out.send(Address(CONTROLLER), AlterConfigs(record))
    gateway.shared.configure_logs(numbers, of_logs(given))


def records(numbers: tuple[int, ...], given: Mapping[str, str]) -> list[ConfigRecord]:
    """Return the records that set the replication settings of a topic for its partitions."""
    settings = _settings(Scope.TOPIC, given)
    min_isr = settings.count(_MIN_ISR) if _MIN_ISR in given else None
    unclean = settings.flag(_UNCLEAN) if _UNCLEAN in given else None
    return [ConfigRecord(number, min_isr, unclean) for number in numbers]


def of_logs(given: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the values of the settings that a model reads, out of those given."""
    settings = _settings(Scope.TOPIC, given)
    return {each: settings[each] for each in given if each in settings}
