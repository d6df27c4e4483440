"""Read responses of Cruise Control's REST API, recognised by their content; keys match without case and punctuation.

Rebalance answers hold the load before and after; each becomes a cluster, "NAME (before)" and "NAME (after)". /state
is a view of no brokers, with facts. A /user_tasks envelope is opened and each originalResponse read by itself.

Source: Cruise Control servlet/response (OptimizationResult, CruiseControlState, ErrorResponse, UserTaskState), 2.5.
"""

from __future__ import annotations

from typing import Any, Final

from broker.cluster import ClusterView
from broker.errors import InputError, NothingUsableError
from broker.partition_faults import fault_of_ids, fault_of_number, fault_of_topic_name
from placement.formats.cruise_control_cluster import is_cluster_state, read_cluster_state
from placement.formats.cruise_control_load import is_load, read_load
from placement.formats.documents import Documents, brief, folded, parse_object, plain
from placement.formats.parsed import ParsedDump, RowCounts

FORMAT: Final = "cruise-control"
_STATES: Final = ("monitorstate", "executorstate", "analyzerstate", "anomalydetectorstate")
_TASKS_MAX: Final = 10_000  # Cruise Control keeps 100 finished tasks a kind.
_NO_BROKERS: Final = "this answer describes Cruise Control, not the brokers: nothing can be measured"


def is_cruise_control(value: dict[str, Any]) -> bool:
    """Return whether an object is a response of Cruise Control."""
    keys = folded(value).keys()
    return (
        "usertasks" in keys
        or "errormessage" in keys
        or _is_rebalance(value)
        or bool(keys & set(_STATES))
        or is_cluster_state(value)
        or is_load(value)
    )


def _is_rebalance(value: dict[str, Any]) -> bool:
    keys = folded(value).keys()
    return "loadafteroptimization" in keys or ("summary" in keys and bool(keys & {"proposals", "goalsummary"}))


def read_cruise_control(found: Documents, *, source: str, name: str) -> ParsedDump:
    """Return the clusters of one response; raise InputError if no part of it can be used."""
    value = found.documents[0].value
    row_counts = found.row_counts(source, FORMAT)
    tasks = folded(value).get("usertasks")
    clusters = _read_answer(value, row_counts, name) if tasks is None else _read_tasks(tasks, row_counts, name)
    for cluster in clusters:
        row_counts.notes.extend(note for note in cluster.notes if note not in row_counts.notes)
    return row_counts.dump(tuple(clusters))


def _read_tasks(tasks: Any, row_counts: RowCounts, name: str) -> list[ClusterView]:
    if not isinstance(tasks, list) or len(tasks) > _TASKS_MAX:
        raise InputError(f"userTasks is not a list of at most {_TASKS_MAX} tasks", source=row_counts.source)
    clusters: list[ClusterView] = []
    for number, raw in enumerate(tasks):
        task = folded(raw)
        text = task.get("originalresponse")
        if not isinstance(text, str):
            row_counts.reject(f"userTasks[{number}]: the task holds no originalResponse", brief(raw))
            continue
        title = name if len(tasks) == 1 else f"{name} task {number + 1}"
        analysed = row_counts.rows_analysed
        try:
            clusters += _read_answer(parse_object(text, source=row_counts.source), row_counts, title)
        except InputError as error:
            row_counts.reject(f"userTasks[{number}]: {error.what}", error.value or text[:200])
        else:
            # The envelope itself is no row: what it carries is.
            assert row_counts.rows_analysed >= analysed, (row_counts.rows_analysed, analysed)
    return clusters


def _read_answer(value: dict[str, Any], row_counts: RowCounts, name: str) -> list[ClusterView]:
    answer = folded(value)
    if "errormessage" in answer:
        what = "Cruise Control answered with an error; this is no description of a cluster"
        raise NothingUsableError(what, source=row_counts.source, value=brief(answer["errormessage"]))
    if _is_rebalance(value):
        return _read_rebalance(answer, row_counts, name)
    if is_cluster_state(value):
        return [read_cluster_state(value, row_counts, name=name)]
    if is_load(value):
        return [read_load(value, "", row_counts, name=name)]
    if answer.keys() & set(_STATES):
        row_counts.rows_analysed += 1
        return [_without_brokers(name, row_counts, _state_facts(answer))]
    raise InputError(
        "not an answer of Cruise Control that describes a cluster", source=row_counts.source, value=brief(value)
    )


def _read_rebalance(answer: dict[str, Any], row_counts: RowCounts, name: str) -> list[ClusterView]:
    facts = _rebalance_facts(answer, row_counts)
    clusters = []
    for key, suffix in (("loadbeforeoptimization", "before"), ("loadafteroptimization", "after")):
        if is_load(answer.get(key)):
            view = read_load(
                answer[key],
                f"{suffix}: ",
                row_counts,
                name=f"{name} ({suffix})",
                facts=facts,
            )
            clusters.append(view)
    if not clusters:
        row_counts.rows_analysed += 1
        clusters.append(_without_brokers(name, row_counts, facts))
    return clusters


def _rebalance_facts(answer: dict[str, Any], row_counts: RowCounts) -> tuple[tuple[str, str], ...]:
    facts = _scalars(answer.get("summary"), "")
    proposals = answer.get("proposals")
    if isinstance(proposals, list):
        good = sum(_is_good_proposal(number, raw, row_counts) for number, raw in enumerate(proposals))
        facts.append(("proposals", str(good)))
    goals = answer.get("goalsummary")
    for raw in goals if isinstance(goals, list) else []:
        goal = folded(raw)
        title, status = plain(goal.get("goal"), 80), plain(goal.get("status"), 40)
        if title and status:
            facts.append((f"goal {title}", status))
    return tuple(facts)


def _is_good_proposal(number: int, raw: Any, row_counts: RowCounts) -> bool:
    """Return whether one proposal can be used; count it as analysed or as rejected."""
    item = folded(raw)
    partition = folded(item.get("topicpartition"))
    fault = (
        fault_of_topic_name(partition.get("topic"))
        or fault_of_number(partition.get("partition"), "partition")
        or fault_of_ids(item.get("oldreplicas"), "oldReplicas")
        or fault_of_ids(item.get("newreplicas"), "newReplicas")
    )
    if fault:
        row_counts.reject(f"proposals[{number}]: {fault}", brief(raw))
        return False
    row_counts.rows_analysed += 1
    return True


def _state_facts(answer: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    facts = []
    for key in _STATES:
        facts += _scalars(answer.get(key), f"{key.removesuffix('state')} ")
    return tuple(facts)


def _scalars(value: Any, prefix: str) -> list[tuple[str, str]]:
    """Return the plain values of an object as text, in its order."""
    items = value.items() if isinstance(value, dict) else ()
    return [
        (prefix + (plain(key, 80) or ""), (plain(item, 200) or "") if isinstance(item, str) else brief(item)[:200])
        for key, item in items
        if isinstance(item, str | int | float)
    ]


def _without_brokers(name: str, row_counts: RowCounts, facts: tuple[tuple[str, str], ...]) -> ClusterView:
    return ClusterView(
        name=name,
        source=row_counts.source,
        format=FORMAT,
        brokers=(),
        partitions_complete=False,
        facts=facts,
        notes=(_NO_BROKERS,),
    )
