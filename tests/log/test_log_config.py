"""A log's settings by Kafka's names."""

from __future__ import annotations

import pytest

from broker.config import Scope, Settings, lookup
from broker.errors import UsageError
from broker.releases import Release
from log.log_config import NAMES, LogConfig


def test_a_setting_that_no_log_reads_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^no log reads a setting 'min.insync.replicas'$"):
        LogConfig.parse({"min.insync.replicas": 2})


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("segment.bytes", "700", "a whole number"),
        ("retention.ms", 1.5, "a whole number"),
        ("flush.messages", None, "a whole number"),
        ("segment.ms", True, "a whole number"),
        ("min.cleanable.dirty.ratio", "0.5", "a number"),
        ("compression.type", 4, "a name"),
        ("message.format.version", 2, "a version"),
        ("cleanup.policy", 7, "a list"),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(name: str, value: object, wanted: str) -> None:
    with pytest.raises(UsageError) as caught:
        LogConfig.parse({name: value})
    assert str(caught.value) == f"setting {name} is {value!r}; {wanted} is needed"


def test_every_default_is_that_of_the_settings_of_its_release() -> None:
    for release in ("3.9", "4.0", "4.1", "4.2", "4.3", "4.4"):
        defaults = LogConfig(release=Release(release))
        assert LogConfig.of(Settings.of(Scope.TOPIC, {}, release=Release(release))) == defaults
        for name, field in NAMES.items():
            assert getattr(defaults, field) == lookup(name, Scope.TOPIC, Release(release)).default, (release, name)
