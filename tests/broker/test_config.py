"""Settings: the catalog is Kafka's to the letter, values outside it are refused, and fallbacks are Kafka's."""

from __future__ import annotations

import json
import re
from collections import defaultdict

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from broker.__main__ import cli
from broker.config import (
    LONG_MAX,
    PAIR_RULES,
    UNLIMITED_MS,
    PairRule,
    Scope,
    Setting,
    Settings,
    Value,
    ValueType,
    catalog,
    find,
    format_value,
    lookup,
    parse,
)
from broker.config.catalog import Change, Row, changes_of, left_out_because, rows
from broker.errors import UsageError
from broker.releases import KNOWN, Release
from tests.kafka.settings import KafkaSetting, printed_settings

CATALOG = catalog()
RELEASES = [release for release in map(Release, KNOWN) if release >= Release("3.9")]


def printed_by(setting: Setting) -> KafkaSetting:
    """The setting as Kafka's ConfigDef prints one like it."""
    lists = [word for word, takes in (("empty", setting.allows_empty), ("repeated", setting.allows_repeats)) if takes]
    has_items = setting.type is ValueType.LIST and bool(setting.default)
    return KafkaSetting(
        scope=setting.scope.value,
        name=setting.name,
        type=setting.type.name,
        default="null" if setting.default is None else java_text(setting.default),
        validator=validator_of(setting),
        lists=",".join(lists) if has_items else "empty" if setting.type is ValueType.LIST else "",
        internal=str(setting.internal).lower(),
        deprecated=str(bool(setting.deprecated)).lower(),
        update=setting.update,
        synonyms=",".join(setting.synonyms) if setting.scope is Scope.TOPIC else "",
    )


def java_text(value: Value) -> str:
    return format_value(value).replace("e+", "E") if isinstance(value, float) else format_value(value)


def validator_of(setting: Setting) -> str:
    """What Kafka's ConfigDef prints as the validator of such a setting."""
    if setting.allowed:
        return f"[{', '.join(setting.allowed)}]"
    if setting.minimum is None:
        return ""
    besides = "" if setting.besides is None else f" or {setting.besides}"
    return f"[{setting.minimum},...{'' if setting.maximum is None else f',{setting.maximum}'}]{besides}"


def forms() -> dict[tuple[str, str], list[Row]]:
    found = defaultdict(list)
    for row in rows():
        found[row.scope, row.name].append(row)
    return found


def test_the_releases_of_the_table_are_those_whose_settings_are_known() -> None:
    kafka = printed_settings(rows())
    assert list(kafka) == RELEASES
    assert min(map(len, kafka.values())) > 300
    with pytest.raises(UsageError, match=r"^the settings of Kafka 3\.8 are not known; allowed are 3\.9 to 4\.4$"):
        catalog(Release("3.8"))


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_every_setting_that_a_release_prints_is_in_the_catalog_or_left_out(release: Release) -> None:
    kafka = printed_settings(rows())[release]
    ours = {(setting.scope.value, setting.name): printed_by(setting) for setting in catalog(release)}
    left_out = {key for key in kafka if left_out_because(key[1], [Scope(key[0])])}
    assert len(ours) == len(catalog(release))
    assert ours == {key: setting for key, setting in kafka.items() if key not in left_out}


def test_a_setting_is_left_out_or_has_a_sentence_and_a_source() -> None:
    for key, held in forms().items():
        assert [row.releases for row in held] == sorted(row.releases for row in held), key
        assert all(row.left_out == held[0].left_out for row in held), key
        if held[0].left_out:
            assert not any(row.sentence or row.source for row in held), key
        else:
            assert re.fullmatch(r"[A-Z_].*\.", held[-1].sentence), key
            assert re.match(r"[A-Z]\w+Configs?\b|KIP-\d+", held[-1].source), key


def changed(key: tuple[str, str]) -> tuple[Change, ...]:
    return changes_of(key[1], Scope(key[0]))


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_every_default_is_allowed_and_reads_back(release: Release) -> None:
    for setting in catalog(release):
        if setting.default is not None:
            assert parse(setting, format_value(setting.default)) == setting.default


def test_synonyms_are_broker_settings_with_the_same_default() -> None:
    broker = Settings.of(Scope.BROKER, {})
    for setting in CATALOG:
        assert all(lookup(synonym, Scope.BROKER) for synonym in setting.synonyms)
        if setting.synonyms:
            assert Settings.of(setting.scope, {}, broker=broker)[setting.name] == setting.default, setting.name


@pytest.mark.parametrize(
    ("scope", "name", "message"),
    [
        (
            Scope.TOPIC,
            "min.insync.replica",
            "there is no topic setting 'min.insync.replica'; the nearest is 'min.insync.replicas'",
        ),
        (
            Scope.BROKER,
            "retention.ms",
            "there is no broker setting 'retention.ms'; the nearest is 'log.retention.ms'",
        ),
        (Scope.GROUP, "ø", "there is no group setting 'ø'"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_one(scope: Scope, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        lookup(name, scope)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("min.insync.replicas", "0", "min.insync.replicas is 0; allowed are whole numbers from 1 to 2147483647"),
        ("min.insync.replicas", "1.5", "min.insync.replicas is 1.5; allowed are whole numbers from 1 to 2147483647"),
        (
            "min.insync.replicas",
            "2147483648",
            "min.insync.replicas is 2147483648; allowed are whole numbers from 1 to 2147483647",
        ),
        ("min.insync.replicas", "", "min.insync.replicas is empty; allowed are whole numbers from 1 to 2147483647"),
        ("preallocate", "yes", "preallocate is yes; allowed are true and false"),
        ("min.cleanable.dirty.ratio", "1.01", "min.cleanable.dirty.ratio is 1.01; allowed are numbers from 0 to 1"),
        ("min.cleanable.dirty.ratio", "nan", "min.cleanable.dirty.ratio is nan; allowed are numbers from 0 to 1"),
        (
            "cleanup.policy",
            "delete,keep",
            "cleanup.policy is delete,keep; allowed are lists of compact, delete, each at most once",
        ),
        (
            "message.timestamp.type",
            "createtime",
            "message.timestamp.type is createtime; allowed are CreateTime, LogAppendTime",
        ),
        ("segment.bytes", "1048575", "segment.bytes is 1048575; allowed are whole numbers from 1048576 to 2147483647"),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_range(name: str, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        Settings.parse(Scope.TOPIC, {name: text})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("preallocate", " TRUE ", True),
        ("min.insync.replicas", "+2", 2),
        ("retention.ms", "-1", -1),
        ("cleanup.policy", "compact , delete", ("compact", "delete")),
        ("cleanup.policy", "", ()),
        ("min.cleanable.dirty.ratio", "5e-1", 0.5),
        ("compression.type", "zstd ", "zstd"),
    ],
)
def test_texts_are_read_as_kafka_reads_them(name: str, text: str, value: Value) -> None:
    assert Settings.parse(Scope.TOPIC, {name: text})[name] == value


@given(st.sampled_from([s for s in CATALOG if s.range is not None]), st.integers(-(2**64), 2**64))
def test_a_whole_number_is_kept_exactly_when_it_is_in_range(setting: Setting, number: int) -> None:
    assert setting.range is not None
    least, greatest = setting.range
    if least <= number <= greatest or number == setting.besides:
        assert parse(setting, str(number)) == number
    else:
        with pytest.raises(UsageError, match=re.escape(setting.name)):
            parse(setting, str(number))


@given(st.sampled_from(CATALOG), st.text(max_size=30))
def test_any_text_is_a_usage_error_or_a_value_that_reads_back(setting: Setting, text: str) -> None:
    try:
        value = parse(setting, text)
    except UsageError:
        return
    assert parse(setting, format_value(value)) == value


@pytest.mark.parametrize(
    ("broker", "name", "value"),
    [
        ({}, "retention.ms", 604_800_000),
        ({"log.retention.hours": "1"}, "retention.ms", 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "5"}, "retention.ms", 300_000),
        (
            {
                "log.retention.hours": "1",
                "log.retention.minutes": "5",
                "log.retention.ms": "7",
            },
            "retention.ms",
            7,
        ),
        ({"log.retention.hours": "-1"}, "retention.ms", UNLIMITED_MS),
        ({"log.retention.minutes": "-30"}, "retention.ms", UNLIMITED_MS),
        ({"log.roll.hours": "2"}, "segment.ms", 7_200_000),
        ({"log.roll.jitter.hours": "2", "log.roll.jitter.ms": "3"}, "segment.jitter.ms", 3),
        ({"log.flush.scheduler.interval.ms": "9"}, "flush.ms", 9),
        ({"log.flush.scheduler.interval.ms": "9", "log.flush.interval.ms": "8"}, "flush.ms", 8),
        ({"message.max.bytes": "2000000"}, "max.message.bytes", 2_000_000),
        ({"min.insync.replicas": "2"}, "min.insync.replicas", 2),
        ({"log.cleaner.min.cleanable.ratio": "0.1"}, "min.cleanable.dirty.ratio", 0.1),
        ({"log.cleanup.policy": "compact"}, "cleanup.policy", ("compact",)),
    ],
)
def test_a_topic_falls_back_to_its_broker(broker: dict[str, str], name: str, value: Value) -> None:
    settings = Settings.parse(Scope.TOPIC, {}, broker=Settings.parse(Scope.BROKER, broker))
    assert settings[name] == value


@pytest.mark.parametrize("rule", PAIR_RULES, ids=lambda rule: f"{rule.lesser}-{rule.greater}")
def test_a_pair_that_kafka_holds_against_each_other_must_agree(rule: PairRule) -> None:
    lesser, greater = lookup(rule.lesser, rule.scope), lookup(rule.greater, rule.scope)
    assert lesser.range is not None
    assert greater.range is not None
    with pytest.raises(UsageError, match=r"it must be (below|at most)"):
        Settings.of(rule.scope, {lesser.name: lesser.range[1], greater.name: greater.range[0]})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("consumer.session.timeout.ms", 44_999, "at least group.consumer.min.session.timeout.ms, which is 45000"),
        ("consumer.session.timeout.ms", 60_001, "at most group.consumer.max.session.timeout.ms, which is 60000"),
        ("consumer.heartbeat.interval.ms", 4_999, "at least group.consumer.min.heartbeat.interval.ms, which is 5000"),
        ("consumer.heartbeat.interval.ms", 15_001, "at most group.consumer.max.heartbeat.interval.ms, which is 15000"),
        (
            "consumer.assignment.interval.ms",
            15_001,
            "at most group.consumer.max.assignment.interval.ms, which is 15000",
        ),
        ("share.session.timeout.ms", 60_001, "at most group.share.max.session.timeout.ms, which is 60000"),
        ("share.record.lock.duration.ms", 14_999, "at least group.share.min.record.lock.duration.ms, which is 15000"),
        ("share.delivery.count.limit", 11, "at most group.share.max.delivery.count.limit, which is 10"),
        ("share.partition.max.record.locks", 4001, "at most group.share.max.partition.max.record.locks, which is 4000"),
        ("streams.heartbeat.interval.ms", 4_999, "at least group.streams.min.heartbeat.interval.ms, which is 5000"),
        ("streams.num.standby.replicas", 3, "at most group.streams.max.standby.replicas, which is 2"),
    ],
)
def test_a_group_stays_within_the_bounds_of_its_broker(name: str, value: int, message: str) -> None:
    """GroupConfig.validate: the broker's least and most, its own or Kafka's defaults."""
    with pytest.raises(UsageError) as caught:
        Settings.of(Scope.GROUP, {name: value})
    assert str(caught.value) == f"{name} is {value}; it must be {message}"
    bound = re.sub(r"^at \w+ (\S+), which.*$", r"\1", message)
    pairs = {bound: value} | ({bound.replace(".min.", "."): 45_000} if ".min.session" in bound else {})
    assert Settings.of(Scope.GROUP, {name: value}, broker=Settings.of(Scope.BROKER, pairs))[name] == value


def test_before_4_3_only_consumer_groups_are_held_against_their_broker() -> None:
    """GroupConfigManager.validate joins the broker's values of consumer groups alone, 4.0.1 to 4.2.1."""
    raised = {"group.share.min.session.timeout.ms": 50_000, "group.share.session.timeout.ms": 50_000}
    given = {"consumer.heartbeat.interval.ms": 6000}
    newer = Settings.of(Scope.BROKER, raised)
    assert Settings.of(Scope.GROUP, given, broker=newer).count("share.session.timeout.ms") == 50_000
    older = Settings.of(Scope.BROKER, raised, release=Release("4.2"))
    with pytest.raises(UsageError) as caught:
        Settings.of(Scope.GROUP, given, broker=older)
    assert str(caught.value) == (
        "share.session.timeout.ms is 45000; it must be at least group.share.min.session.timeout.ms, which is 50000"
    )


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("latest", True),
        ("by_duration:P1DT6H", True),
        ("by_duration:-PT-0.5s", True),
        ("by_duration:P1Dt", True),
        ("by_duration:P106751991167300D", True),
        ("by_duration:P106751991167301D", False),
        ("by_duration:PT1H-61M", False),
        ("by_duration:PT", False),
        ("by_duration:P", False),
        ("by_duration:PnDTnHnMn.nS", False),
        ("by_duration", False),
        ("BY_DURATION:PT1S", False),
        ("none", False),
    ],
)
def test_where_a_share_group_begins_is_a_word_or_a_duration_of_java(text: str, allowed: bool) -> None:
    """Answers of java.time.Duration.parse, Java 17, and of ShareGroupAutoOffsetResetStrategy, 4.3.1."""
    if allowed:
        assert Settings.parse(Scope.GROUP, {"share.auto.offset.reset": text}).text("share.auto.offset.reset") == text
    else:
        with pytest.raises(UsageError) as caught:
            Settings.parse(Scope.GROUP, {"share.auto.offset.reset": text})
        assert str(caught.value) == (
            f"share.auto.offset.reset is {text}; allowed are latest, earliest, by_duration:PnDTnHnMn.nS"
        )


def test_accessors_convert_to_milliseconds_and_bytes() -> None:
    broker = Settings.parse(Scope.BROKER, {"broker.rack": "a"})
    assert broker.duration_ms("log.retention.hours") == 604_800_000
    assert broker.duration_ms("leader.imbalance.check.interval.seconds") == 300_000
    assert broker.duration_ms("offsets.retention.minutes") == 604_800_000
    assert broker.size_bytes("log.segment.bytes") == 2**30
    assert broker.count("num.io.threads") == 8
    assert broker.ratio("log.cleaner.min.cleanable.ratio") == 0.5
    assert broker.flag("auto.leader.rebalance.enable") is True
    assert broker.text("broker.rack") == "a"
    assert broker.text("replica.selector.class") is None
    assert broker.texts("group.consumer.assignors") == ("uniform", "range")


@pytest.mark.parametrize(
    ("accessor", "name", "message"),
    [
        ("duration_ms", "log.segment.bytes", "log.segment.bytes is not a duration"),
        ("size_bytes", "log.roll.hours", "log.roll.hours is not a size in bytes"),
        ("count", "log.roll.ms", "log.roll.ms is not set and has no default"),
        ("flag", "log.roll.ms", "log.roll.ms is of type long, not boolean"),
        ("count", "no.such", "there is no broker setting 'no.such'"),
    ],
)
def test_accessors_refuse_settings_of_another_kind(accessor: str, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(message)}"):
        getattr(Settings.of(Scope.BROKER, {}), accessor)(name)


def test_settings_are_those_of_their_release() -> None:
    older, newest = Settings.of(Scope.BROKER, {}, release=Release("3.9")), Settings.of(Scope.BROKER, {})
    name = "log.message.timestamp.after.max.ms"
    assert (older[name], newest[name]) == (LONG_MAX, 3_600_000)
    assert "message.format.version" in Settings.of(Scope.TOPIC, {}, broker=older)
    assert "message.format.version" not in Settings.of(Scope.TOPIC, {}, broker=newest)
    assert Settings.parse(Scope.TOPIC, {"segment.bytes": "14"}, release=Release("4.0"))["segment.bytes"] == 14
    with pytest.raises(UsageError, match=r"^segment\.bytes is 14; allowed are whole numbers from 1048576 to"):
        Settings.parse(Scope.TOPIC, {"segment.bytes": "14"}, release=Release("4.1"))
    assert not list(Settings.of(Scope.GROUP, {}, release=Release("3.9")))


def test_a_rule_of_two_settings_holds_since_its_release() -> None:
    equal: dict[str, Value] = {
        "group.consumer.heartbeat.interval.ms": 15_000,
        "group.consumer.session.timeout.ms": 15_000,
        "group.consumer.min.session.timeout.ms": 15_000,
    }
    assert Settings.of(Scope.BROKER, equal, release=Release("3.9"))
    with pytest.raises(UsageError, match=r"or members expire between two heartbeats$"):
        Settings.of(Scope.BROKER, equal, release=Release("4.0"))


@pytest.mark.parametrize(
    ("name", "release", "message"),
    [
        ("message.format.version", "4.3", "there is no setting 'message.format.version' in Kafka 4.3; 3.9 has it"),
        (
            "consumer.session.timeout.ms",
            "3.9",
            "there is no setting 'consumer.session.timeout.ms' in Kafka 3.9; 4.0 to 4.4 have it",
        ),
        ("ssl.keystore.type", "4.3", "there is no setting 'ssl.keystore.type' here: security is left out"),
    ],
)
def test_a_name_that_is_a_setting_elsewhere_is_refused_with_where(name: str, release: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        find(name, Release(release))


def test_the_command_answers_as_the_release_that_is_asked_for() -> None:
    done = CliRunner().invoke(cli, ["config", "message.timestamp.after.max.ms", "--kafka", "3.9", "--json"])
    assert [record["default"] for record in json.loads(done.output)] == [LONG_MAX]
    older = CliRunner().invoke(cli, ["config", "--kafka", "3.9", "--json"])
    assert len(json.loads(older.output)) == len(catalog(Release("3.9")))
