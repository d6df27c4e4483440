"""Small bugs: where they are put, that they are one change each, and that somebody notices one that matters."""

from __future__ import annotations

import ast
import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner

from broker.error_codes import ErrorCode
from replication.roles.states.partition_status import MoveInput
from replication.rules.election import NOBODY
from replication.rules.switches import CURRENT
from tests.architecture.house import ROOT
from tests.replication.mutants import campaign, histories, partition_changes
from tests.replication.mutants.__main__ import PLACES, all_mutants, draw, main
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.equivalents import _TALLIES, EQUIVALENT, _attributes_set, reason_of
from tests.replication.mutants.judges import Verdict, by_histories, explored_modules
from tests.replication.mutants.nearest import test_files as files_for
from tests.replication.mutants.operators import Mutant, mutants_of
from tests.replication.mutants.table import Judged, survivor_lines, table_lines
from tests.replication.mutants.tree import Tree, copied_tree

SOURCE = '''"""A module."""
LIMIT = 5


@decorated(1)
def decide(a: int, b: int = 3) -> int:
    """Return 1 or 2."""
    assert a < 7, "small"
    if a < b and b is not None:
        act(a, b)
    else:
        raise ValueError(f"{a + 1} is wrong")
    total.sum += 1
    return [each for each in a if each in b]


def state_text() -> int:
    return 1 + 1
'''


def changes(operator: str) -> list[tuple[str, str]]:
    return [(m.before, m.after) for m in mutants_of("m.py", SOURCE) if m.operator == operator]


def test_each_operator_changes_what_it_is_named_for() -> None:
    assert changes("comparison") == [
        ("a < b", "(a <= b)"),
        ("b is not None", "(b is None)"),
        ("each in b", "(each not in b)"),
    ]
    assert changes("dropped operand") == [
        ("a < b and b is not None", "(a < b)"),
        ("a < b and b is not None", "(b is not None)"),
    ]
    assert changes("negated condition") == [
        ("a < b and b is not None", "(not (a < b and b is not None))"),
        ("each in b", "(not (each in b))"),
    ]
    assert [after for _, after in changes("dropped branch")] == ["False", "True"]
    assert changes("swapped arguments") == [("act(a, b)", "act(b, a)")]
    assert changes("dropped call") == [("act(a, b)", "pass"), ("total.sum += 1", "pass")]
    assert changes("off by one") == [("1", "2")]


def test_what_only_describes_is_not_changed() -> None:
    lines = {mutant.line for mutant in mutants_of("m.py", SOURCE)}
    assert lines == {9, 10, 13, 14}


@pytest.mark.parametrize("path", ["replication/rules/election.py", "log/partition/recovery.py"])
def test_every_mutant_is_one_other_module(path: str) -> None:
    source = (ROOT / path).read_text(encoding="utf-8")
    found = mutants_of(path, source)
    texts = [ast.unparse(ast.parse(mutant.applied(source))) for mutant in found]
    assert len(found) > 30
    assert ast.unparse(ast.parse(source)) not in texts


def test_every_mutant_has_a_name_of_its_own() -> None:
    population = all_mutants(("replication/roles", "broker/group"))
    assert len({mutant.name for mutant in population}) == len(population)
    twice = mutants_of("m.py", "def f(a):\n    return a + 0 or g(a, 0)\n")
    assert [m.name.rpartition(" -> ")[2] for m in twice if m.operator == "off by one"] == ["1", "1 (2)"]


def test_what_is_equivalent_is_there() -> None:
    names = {mutant.name for mutant in all_mutants(PLACES)}
    assert set(EQUIVALENT) <= names


def test_the_order_of_least_and_greatest_is_equivalent() -> None:
    swapped = attrs.evolve(mutant("m.py"), operator="swapped arguments", before="min(a, b)", after="min(b, a)")
    assert reason_of(swapped) is not None
    assert reason_of(attrs.evolve(swapped, before="min(a, b, key=len)")) is None
    assert reason_of(attrs.evolve(swapped, before="minus(a, b)")) is None


def test_where_a_tally_begins_and_how_it_rises_is_equivalent() -> None:
    log = all_mutants(("replication/roles/replica_log.py",))
    unnamed = [each for each in log if each.operator == "off by one" and each.name not in EQUIVALENT]
    of_tally = [each for each in unnamed if reason_of(each) is not None]
    assert [each.function for each in of_tally] == ["__init__", "__init__", "note_cleaned", "_changed"]
    dropped = [each for each in log if (each.function, each.operator) == ("_changed", "dropped call")]
    assert [reason_of(each) for each in dropped] == [None, None]


@pytest.mark.parametrize("path", _TALLIES)
def test_every_tally_is_there(path: str) -> None:
    assert _TALLIES[path] <= set(_attributes_set(path).values())


def test_the_order_of_a_timers_time_and_delay_is_equivalent() -> None:
    source = "class C:\n    def f(self):\n        self._timers.set(name, now_ms, delay_ms, act)\n"
    swapped = [each for each in mutants_of("m.py", source) if each.operator == "swapped arguments"]
    assert [reason_of(each) is not None for each in swapped] == [
        "(name, delay_ms, now_ms" in each.after for each in swapped
    ]
    assert len(swapped) == 3


def test_a_draw_is_the_same_for_a_seed_and_has_every_operator() -> None:
    population = all_mutants(("replication/rules",))
    drawn = draw(population, 21, 4)
    assert drawn == draw(population, 21, 4)
    assert drawn != draw(population, 21, 5)
    assert len({mutant.operator for mutant in drawn}) == 7


def test_a_changed_file_is_the_same_again_afterwards(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(SOURCE)
    with Tree(tmp_path).changed("m.py", "x = 1"):
        assert (tmp_path / "m.py").read_text() == "x = 1"
    assert (tmp_path / "m.py").read_text() == SOURCE


def test_a_process_that_never_ends_is_ended(tmp_path: Path) -> None:
    assert Tree(tmp_path).run(["-c", "while True: pass"], 1).status is None
    assert Tree(tmp_path).run(["-c", "raise SystemExit(3)"], 9).status == 3


def test_the_nearest_tests_import_the_module() -> None:
    files = files_for(ROOT, "replication/rules/election.py")
    assert files[0] == "tests/replication/rules/test_election.py"
    assert len(files) == len(set(files)) > 100
    assert not any("mutants" in name for name in files)


def test_the_explorer_notices_an_election_from_anywhere() -> None:
    """An unclean stop leaves its replica in the ELR."""
    path = "replication/rules/elr.py"
    with copied_tree() as tree:
        assert by_histories(tree) == ""
        source = (tree.root / path).read_text(encoding="utf-8")
        wanted = [mutant for mutant in mutants_of(path, source) if mutant.operator == "negated condition"]
        with tree.changed(path, wanted[0].applied(source)):
            assert by_histories(tree) != ""


def test_the_explorer_is_asked_about_what_it_loads() -> None:
    with copied_tree() as tree:
        explored = explored_modules(tree)
    assert {"replication/rules/elr.py", "replication/explore/search.py"} <= explored
    assert "replication/roles/leader.py" not in explored


@pytest.mark.parametrize("shape", sorted({*campaign.TURN}))
def test_today_s_code_gives_the_campaign_nothing_to_notice(shape: str) -> None:
    assert campaign.noticed(shape, 1) == ""


def off_by_one(number: int) -> int:
    return number + 1


LEADERS, TRUNCATIONS = "tests.replication.mutants.leader_writes", "tests.replication.mutants.lone_truncations"
EPOCH_CACHE = "log.partition.epoch_cache"
CONSUMER = "replication.groups.client.consumer_client"
BUGS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "leader": (LEADERS, "leader_high_watermark", off_by_one),
    "decisions": ("tests.replication.mutants.lone_controllers", "next_elr", lambda elr: elr[1:]),
    "broker": ("replication.roles.leader", "is_sent_at_once", lambda is_sent: True),
    "truncation": (TRUNCATIONS, "trimmed_at_end", lambda epochs: epochs[:-1]),
    "recovery": ("log.partition.segment_recovery", "_sound_count", off_by_one),
    "controller": ("replication.rules.partition_change", "next_elr", lambda elr: elr[1:]),
    "program": ("log.partition.retention", "deletable_count", lambda count: max(0, count - 1)),
    "classic": ("broker.group.classic.coordinator", "heartbeat_error", lambda error: ErrorCode.NONE),
    "consumers": ("broker.group.consumer.heartbeats", "with_target", lambda group: attrs.evolve(group, target_ms=None)),
    "offsets": ("tests.replication.mutants.lone_offsets", "offsets_partition", off_by_one),
    "service": ("broker.group.service", "_told_not_stored", lambda error: ErrorCode.UNKNOWN_SERVER_ERROR),
    "shards": ("replication.groups.shard", "_is_unstable", lambda is_unstable: False),
    "replies": (CONSUMER, "Rebalanced", lambda note: attrs.evolve(note, latency_ms=note.latency_ms + 1)),
    "connections": ("replication.groups.connections", "RequestProbe", lambda probe: attrs.evolve(probe, tickets=())),
    "commits": ("replication.groups.commits", "_why_impossible", lambda why: ""),
    "members": ("replication.groups.fetching", "batches_in", lambda batches: [*batches][:-1]),
    "processes": ("replication.groups.alone.simulation", "exponential", off_by_one),
    "appends": ("log.partition.leader_append", "checked_timestamps", lambda times: [*times][:-1]),
    "limits": ("log.partition.retention", "deletable_count", lambda count: max(0, count - 1)),
    "epochs": (EPOCH_CACHE, "read_epoch_checkpoint", lambda entries: entries[1:]),
    "power": (EPOCH_CACHE, "read_epoch_checkpoint", lambda entries: entries[1:]),
    "client": ("replication.groups.client.classic_client", "read_assignment", lambda share: frozenset([*share][1:])),
}
"""By shape a module, a function of it, and what a bug makes of its result."""


@pytest.mark.parametrize("shape", sorted(BUGS))
def test_a_lone_run_notices_a_bug(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, name, bug = BUGS[shape]
    module = importlib.import_module(path)
    sound = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given, **named: bug(sound(*given, **named)))
    told = ""
    for seed in range(20):
        try:
            told = told or campaign.noticed(shape, seed)
        except (AssertionError, IndexError, KeyError) as error:
            told = type(error).__name__
    assert told


@pytest.mark.parametrize(
    ("check", "name", "answer"),
    [
        (partition_changes.elected, "elect", NOBODY),
        (partition_changes.changed, "change", None),
        (partition_changes.changed, "directories_assigned", None),
        (partition_changes.refused, "check_change", None),
        (partition_changes.moved, "move_input", MoveInput.UNTOUCHED),
        (partition_changes.named, "find_machines", ()),
        (partition_changes.named, "without", CURRENT),
    ],
)
def test_a_check_of_changes_notices_who_always_answers_the_same(
    check: Callable[[Draws], Iterator[str]], name: str, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not any([*check(Draws(seed, 0))] for seed in range(40))
    monkeypatch.setattr(partition_changes, name, lambda *_: answer)
    assert any([*check(Draws(seed, 0))] for seed in range(40))


def test_each_shape_has_its_turn() -> None:
    assert {*campaign.TURN} == {*campaign.CLUSTERS, *campaign.ALONE}


def test_a_campaign_notices_a_run_that_raises(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise IndexError("out of it")

    monkeypatch.setattr(campaign, "Simulation", fail)
    assert campaign.main(["1e9", "0"]) == 1
    assert capsys.readouterr().out == "swarm 0: IndexError: out of it\n"


def test_searches_begin_with_today_s_rules() -> None:
    assert [each.depth for each in histories.searches()][:5] == [None] * 5


def mutant(path: str) -> Mutant:
    return Mutant(path, "decide", 3, 4, "comparison", "a < b", "(a <= b)", 0, 5)


def test_the_table_counts_who_noticed() -> None:
    judged = [
        Judged(mutant("a/x.py"), Verdict("I9", "", "FAILED")),
        Judged(mutant("a/y.py"), Verdict("", "", "FAILED")),
        Judged(mutant("b/z.py"), Verdict("", "", "")),
    ]
    lines = [" ".join(line.split()) for line in table_lines(judged)]
    unsure = [
        *judged,
        Judged(mutant("c/z.py"), Verdict("", "", None)),
        Judged(mutant("c/y.py"), Verdict("I9", "", None)),
    ]
    assert [*table_lines(unsure)][-2].endswith("or for which the tests had no time: 50.0%")
    assert "2 of 4 mutants" in [*table_lines(unsure)][-2]
    assert lines[1:4] == ["a 2 0 1 0 2 0", "b 1 0 0 0 0 1", "all 3 0 1 0 2 1"]
    assert lines[4].startswith("the campaign notices 1 of 2 mutants that it or a test notices")
    assert lines[5].endswith("2 of 3 mutants that are not equivalent: 66.7%")
    assert list(survivor_lines(judged)) == ["b/z.py:3 decide [comparison] a < b -> (a <= b)"]


def test_a_run_goes_on_from_what_it_kept(tmp_path: Path) -> None:
    out = tmp_path / "kept.jsonl"
    name = draw(all_mutants(("replication/rules/elr.py",)), 1, 0)[0].name
    out.write_text(json.dumps({"name": name, "campaign": "", "histories": "", "tests": "FAILED"}) + "\n")
    words = ["--in", "replication/rules/elr.py", "--count", "1", "--out", str(out)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0
    assert "replication/rules 1 0 0 0 1 0" in " ".join(done.output.split())
