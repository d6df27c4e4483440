"""Every rule that is turned off is noticed by a fact of its own."""

from __future__ import annotations

import pytest

from replication.rules.switches import SWITCHES
from tests.replication import facts
from tests.replication.mutations import FACTS, holds, main


def test_every_rule_has_a_fact_and_every_fact_a_rule() -> None:
    assert list(FACTS) == list(SWITCHES)
    own = {value for value in vars(facts).values() if getattr(value, "__module__", "") == facts.__name__}
    assert own == set(FACTS.values())


@pytest.mark.parametrize("name", SWITCHES)
def test_the_fact_holds_while_its_rule_is_on(name: str) -> None:
    assert holds(name, turned_on=True)


@pytest.mark.parametrize("name", SWITCHES)
def test_turning_the_rule_off_is_noticed(name: str) -> None:
    assert not holds(name, turned_on=False)


def test_the_table_counts_what_it_caught(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    assert capsys.readouterr().out.endswith(f"{len(SWITCHES)} of {len(SWITCHES)} rules turned off are caught\n")
