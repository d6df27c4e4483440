"""Compute the effective settings of a broker, topic or group: given values, then Kafka's fallbacks and defaults.

Example: a topic without a retention of its own, on a broker with log.retention.hours=1, and one with its own:

    >>> broker = Settings.parse(Scope.BROKER, {"log.retention.hours": "1"})
    >>> Settings.parse(Scope.TOPIC, {}, broker=broker).duration_ms("retention.ms")
    3600000
    >>> Settings.parse(Scope.TOPIC, {"retention.ms": "5"}, broker=broker).duration_ms("retention.ms")
    5

Source: Kafka 4.3.1 ServerTopicConfigSynonyms, KafkaConfig.validateValues, LogConfig.validate,
GroupCoordinatorConfig, ShareGroupConfig, GroupConfig; GroupConfigManager of 4.0.1, 4.1.2 and 4.2.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from broker.config.catalog import OLDEST_SETTINGS, lookup, names
from broker.config.setting import UNIT_MS, Scope, Setting, Unit, Value, ValueType, check, parse
from broker.errors import UsageError
from broker.releases import NEWEST, Release
from broker.units import DurationMs, SizeBytes

UNLIMITED_MS: Final = DurationMs(-1)
"""What Kafka takes every negative log.retention for: nothing is deleted for its age."""

_BATCHING_SINCE: Final = Release("4.3")  # KIP-1263.
_STREAMED_SINCE: Final = Release("4.1")  # KIP-1071.
_SHARED_SINCE: Final = Release("4.0")  # Before, no heartbeat was held against its session.


@attrs.frozen(kw_only=True)
class PairRule:
    """Check that setting `lesser` is at most setting `greater`, or below it if `strictly`; both in the same scope."""

    scope: Scope
    lesser: str
    greater: str
    why: str
    strictly: bool = False
    since: Release = OLDEST_SETTINGS


def _bounded(name: str, since: Release = OLDEST_SETTINGS) -> tuple[PairRule, PairRule]:
    """Return the rules that hold a broker's setting between its `min.` and its `max.`, which stand for {} in `name`."""
    least, own, most = (name.format(bound) for bound in ("min.", "", "max."))
    return (
        PairRule(scope=Scope.BROKER, lesser=least, greater=own, why="as it is the least that is allowed", since=since),
        PairRule(scope=Scope.BROKER, lesser=own, greater=most, why="as that is the most that is allowed", since=since),
    )


def _beating(scope: Scope, prefix: str) -> tuple[PairRule, ...]:
    """Return the rules that hold heartbeats of each kind of group below its session."""
    return tuple(
        PairRule(
            scope=scope,
            lesser=f"{prefix}{kind}.heartbeat.interval.ms",
            greater=f"{prefix}{kind}.session.timeout.ms",
            why="or members expire between two heartbeats",
            strictly=True,
            since=since,
        )
        for kind, since in (("consumer", _SHARED_SINCE), ("share", _SHARED_SINCE), ("streams", _STREAMED_SINCE))
    )


PAIR_RULES: Final[tuple[PairRule, ...]] = (
    PairRule(
        scope=Scope.BROKER,
        lesser="replica.fetch.wait.max.ms",
        greater="replica.socket.timeout.ms",
        why="or followers time out while the leader still waits",
    ),
    PairRule(
        scope=Scope.BROKER,
        lesser="replica.fetch.wait.max.ms",
        greater="replica.lag.time.max.ms",
        why="or idle followers leave the ISR",
    ),
    *_bounded("group.consumer.{}session.timeout.ms"),
    *_bounded("group.consumer.{}heartbeat.interval.ms"),
    *_bounded("group.share.{}session.timeout.ms"),
    *_bounded("group.share.{}heartbeat.interval.ms"),
    *_bounded("group.share.{}record.lock.duration.ms"),
    *_bounded("group.share.{}delivery.count.limit", since=_BATCHING_SINCE),
    *_bounded("group.share.{}partition.max.record.locks", since=_BATCHING_SINCE),
    *_bounded("group.streams.{}session.timeout.ms", since=_STREAMED_SINCE),
    *_bounded("group.streams.{}heartbeat.interval.ms", since=_STREAMED_SINCE),
    *(
        rule
        for kind in ("consumer", "share", "streams")
        for rule in _bounded(f"group.{kind}.{{}}assignment.interval.ms", since=_BATCHING_SINCE)
    ),
    PairRule(
        scope=Scope.BROKER,
        lesser="group.streams.num.standby.replicas",
        greater="group.streams.max.standby.replicas",
        why="as that is the most that is allowed",
        since=_STREAMED_SINCE,
    ),
    PairRule(
        scope=Scope.BROKER,
        lesser="group.share.max.size",
        greater="group.share.max.share.sessions",
        why="or a member has no session",
        since=Release("4.1"),
    ),
    *_beating(Scope.BROKER, "group."),
    *_beating(Scope.GROUP, ""),
    PairRule(
        scope=Scope.TOPIC,
        lesser="min.compaction.lag.ms",
        greater="max.compaction.lag.ms",
        why="or a record must and must not be compacted",
    ),
)


@attrs.frozen
class Settings(Mapping[str, Value]):
    """Map the name of every setting of one broker, topic or group to the effective value.

    `given` are the values set here, sorted by name; `broker` is what a topic or group falls back to, Kafka's defaults
    when None; names, defaults and bounds are those of `release`. Make one with `Settings.of` or `Settings.parse`.
    """

    scope: Scope
    given: tuple[tuple[str, Value], ...] = ()
    broker: Settings | None = None
    release: Release = NEWEST

    def __attrs_post_init__(self) -> None:
        if self.broker is not None and (self.broker.scope is not Scope.BROKER or self.scope is Scope.BROKER):
            raise UsageError(
                f"settings of a {self.scope.value} cannot fall back to those of a {self.broker.scope.value}"
            )
        if self.broker is not None and self.broker.release != self.release:
            raise UsageError(
                f"settings of a {self.scope.value} of Kafka {self.release} cannot fall back to "
                f"those of a broker of Kafka {self.broker.release}"
            )
        for name, value in self.given:
            check(self._setting(name), value)
        for rule in PAIR_RULES:
            if rule.scope is self.scope and rule.since <= self.release and rule.lesser in self:
                self._check_pair(rule)
        if self.scope is Scope.GROUP and self.given:
            self._check_bounds_of_broker()

    @classmethod
    def of(
        cls,
        scope: Scope,
        given: Mapping[str, Value],
        *,
        broker: Settings | None = None,
        release: Release | None = None,
    ) -> Settings:
        """Return settings with these values; without a release, that of the broker's settings, else the newest.

        Raises UsageError for an unknown name, a bad value or a broken PairRule.
        """
        if release is None:
            release = NEWEST if broker is None else broker.release
        return cls(scope, tuple(sorted(given.items(), key=lambda item: item[0])), broker, release)

    @classmethod
    def parse(
        cls,
        scope: Scope,
        texts: Mapping[str, str],
        *,
        broker: Settings | None = None,
        release: Release | None = None,
    ) -> Settings:
        """Return settings parsed from texts, such as those of a properties file; raise the errors of `of`."""
        if release is None:
            release = NEWEST if broker is None else broker.release
        given = {name: parse(lookup(name, scope, release), text) for name, text in texts.items()}
        return cls.of(scope, given, broker=broker, release=release)

    def __getitem__(self, name: str) -> Value:
        """Return the value in force, in the setting's own unit; raise UsageError for an unknown name."""
        setting = self._setting(name)
        given = self._given(name)
        if given is not None:
            return given
        return self._fallback(setting)

    def __iter__(self) -> Iterator[str]:
        return iter(names(self.scope, self.release))

    def __len__(self) -> int:
        return len(names(self.scope, self.release))

    def __contains__(self, name: object) -> bool:
        return name in names(self.scope, self.release)

    def flag(self, name: str) -> bool:
        """Return the value of a boolean setting."""
        value = self._typed(name, ValueType.BOOLEAN)
        assert isinstance(value, bool), name
        return value

    def count(self, name: str) -> int:
        """Return the value of a whole-number setting, in its own unit; raise UsageError if the value is null."""
        value = self._typed(name, ValueType.SHORT, ValueType.INT, ValueType.LONG)
        if value is None:
            raise UsageError(f"{name} is not set and has no default")
        assert isinstance(value, int), name
        return value

    def ratio(self, name: str) -> float:
        """Return the value of a floating-point setting."""
        value = self._typed(name, ValueType.DOUBLE)
        assert isinstance(value, int | float), name
        return float(value)

    def text(self, name: str) -> str | None:
        """Return the value of a text setting; None for null."""
        value = self._typed(name, ValueType.STRING)
        assert value is None or isinstance(value, str), name
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the value of a list setting."""
        value = self._typed(name, ValueType.LIST)
        assert isinstance(value, tuple), name
        return value

    def duration_ms(self, name: str) -> DurationMs:
        """Return a duration setting in milliseconds, whatever its unit; raise UsageError for other settings."""
        unit = self._setting(name).unit
        if unit not in UNIT_MS:
            raise UsageError(f"{name} is not a duration")
        return DurationMs(self.count(name) * UNIT_MS[unit])

    def size_bytes(self, name: str) -> SizeBytes:
        """Return a size setting in bytes; raise UsageError for other settings."""
        if self._setting(name).unit is not Unit.BYTES:
            raise UsageError(f"{name} is not a size in bytes")
        return SizeBytes(self.count(name))

    def _setting(self, name: str) -> Setting:
        return lookup(name, self.scope, self.release)

    def _given(self, name: str) -> Value:
        return next((value for given, value in self.given if given == name), None)

    def _typed(self, name: str, *types: ValueType) -> Value:
        setting = self._setting(name)
        if setting.type not in types:
            raise UsageError(f"{name} is of type {setting.type.value}, not {types[0].value}")
        return self[name]

    def _fallback(self, setting: Setting) -> Value:
        if self.broker is None:
            return setting.default
        for synonym in setting.synonyms:
            value = self.broker[synonym]
            if value is not None:
                return _converted(value, from_unit=self.broker._setting(synonym).unit, to_unit=setting.unit)
        return setting.default

    def _check_bounds_of_broker(self) -> None:
        """Raise UsageError for a value that a broker does not let a group have (GroupConfig.validate, 4.0 to 4.3)."""
        broker = Settings(Scope.BROKER, release=self.release) if self.broker is None else self.broker
        for name in self:
            kind, _, rest = name.partition(".")
            for bound, relation in (("min", "at least"), ("max", "at most")):
                limit = f"group.{kind}.{bound}.{rest.removeprefix('num.')}"
                if limit not in broker:
                    continue
                value = self._validated(name)
                if value < broker.count(limit) if bound == "min" else value > broker.count(limit):
                    raise UsageError(
                        f"{name} is {value}; it must be {relation} {limit}, which is {broker.count(limit)}"
                    )

    def _validated(self, name: str) -> int:
        """Return the number that Kafka validates: before 4.3, share and streams groups do not ask their broker."""
        asks = self.scope is not Scope.GROUP or self.release >= _BATCHING_SINCE or name.startswith("consumer.")
        if asks or self._given(name) is not None:
            return self.count(name)
        default = self._setting(name).default
        assert isinstance(default, int), name
        return default

    def _check_pair(self, rule: PairRule) -> None:
        lesser, greater = self._validated(rule.lesser), self._validated(rule.greater)
        if lesser > greater or (rule.strictly and lesser == greater):
            relation = "below" if rule.strictly else "at most"
            raise UsageError(
                f"{rule.lesser} is {lesser}; it must be {relation} {rule.greater}, which is {greater}, {rule.why}"
            )


def _converted(value: Value, *, from_unit: Unit, to_unit: Unit) -> Value:
    if from_unit is to_unit or from_unit not in UNIT_MS or not isinstance(value, int):
        return value
    assert to_unit is Unit.MS, to_unit
    # Kafka makes every negative retention in hours or minutes the one that means for ever.
    return UNLIMITED_MS if value < 0 else value * UNIT_MS[from_unit]
