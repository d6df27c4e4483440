"""ZooKeeper's rules: what is refused, what counts up, who is notified, and what goes with a session."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.zookeeper import (
    ANY_VERSION,
    EventType,
    NodeKind,
    Session,
    WatchedEvent,
    ZnodeCode,
    ZnodeRefusedError,
    ZnodeTree,
)

A, B, GONE = Session("a"), Session("b"), Session("gone")
EPHEMERAL = NodeKind.EPHEMERAL
Tree = ZnodeTree[int]


def grown() -> Tree:
    """A tree with /a, /a/b and /e, which is A's; A and B are in session, GONE was."""
    tree = Tree()
    for session in (A, B, GONE):
        tree.open(session)
    tree.create("/a", 1)
    tree.create("/a/b", 2)
    tree.create("/e", 3, EPHEMERAL, A)
    tree.close(GONE)
    return tree


def seen(tree: Tree) -> object:
    """All that can be read of a tree."""
    found = {}
    left = ["/"]
    while left:
        path = left.pop()
        found[path] = tree.get(path)
        left += [f"{path.rstrip('/')}/{name}" for name in tree.children(path)]
    return found, tree.transaction


REFUSALS: list[tuple[ZnodeCode, str, Callable[[Tree], object]]] = [
    (ZnodeCode.NO_NODE, "/x/y", lambda tree: tree.create("/x/y")),
    (ZnodeCode.NO_NODE, "/x", lambda tree: tree.get("/x", A)),
    (ZnodeCode.NO_NODE, "/x", lambda tree: tree.children("/x", A)),
    (ZnodeCode.NO_NODE, "/x", lambda tree: tree.write("/x", 1)),
    (ZnodeCode.NO_NODE, "/x", lambda tree: tree.delete("/x")),
    (ZnodeCode.NO_NODE, "/x", lambda tree: tree.check("/x", ANY_VERSION)),
    (ZnodeCode.NODE_EXISTS, "/a", lambda tree: tree.create("/a")),
    (ZnodeCode.NODE_EXISTS, "/e", lambda tree: tree.create("/e", 3, EPHEMERAL, B)),
    (ZnodeCode.NO_CHILDREN_FOR_EPHEMERALS, "/e/x", lambda tree: tree.create("/e/x")),
    (ZnodeCode.BAD_VERSION, "/a", lambda tree: tree.write("/a", 9, 1)),
    (ZnodeCode.BAD_VERSION, "/a/b", lambda tree: tree.delete("/a/b", 1)),
    (ZnodeCode.BAD_VERSION, "/a", lambda tree: tree.delete("/a", 1)),
    (ZnodeCode.BAD_VERSION, "/a", lambda tree: tree.check("/a", 7)),
    (ZnodeCode.NOT_EMPTY, "/a", lambda tree: tree.delete("/a")),
    (ZnodeCode.SESSION_EXPIRED, "/n", lambda tree: tree.create("/n", 1, EPHEMERAL, GONE)),
    (ZnodeCode.SESSION_EXPIRED, "/a", lambda tree: tree.write("/a", 9, session=GONE)),
    (ZnodeCode.SESSION_EXPIRED, "/a/b", lambda tree: tree.delete("/a/b", session=GONE)),
    (ZnodeCode.SESSION_EXPIRED, "/a", lambda tree: tree.get("/a", GONE)),
    (ZnodeCode.SESSION_EXPIRED, "/a", lambda tree: tree.children("/a", GONE)),
    (ZnodeCode.SESSION_EXPIRED, "/x", lambda tree: tree.exists("/x", GONE)),
    *((ZnodeCode.BAD_ARGUMENTS, path, lambda tree, path=path: tree.create(path)) for path in ("/", "x", "/x/", "//x")),
    *((ZnodeCode.BAD_ARGUMENTS, path, lambda tree, path=path: tree.create(path)) for path in ("/.", "/a/..", "/\0")),
    (ZnodeCode.BAD_ARGUMENTS, "/", lambda tree: tree.delete("/")),
]


@pytest.mark.parametrize(("code", "path", "act"), REFUSALS, ids=[f"{code.name} {path!r}" for code, path, _ in REFUSALS])
def test_what_zookeeper_refuses_is_refused_with_its_code_and_changes_nothing(
    code: ZnodeCode, path: str, act: Callable[[Tree], object]
) -> None:
    tree = grown()
    before = seen(tree)
    with pytest.raises(ZnodeRefusedError) as refused:
        act(tree)
    assert (refused.value.code, refused.value.path) == (code, path)
    assert seen(tree) == before
    # And no watch was set.
    assert tree.create("/later").events == ()


def test_sequential_nodes_are_numbered_by_the_children_that_the_parent_ever_had() -> None:
    tree = Tree()
    tree.open(A)
    tree.create("/p")
    tree.create("/p/other")
    paths = [tree.create("/p/n-", kind=NodeKind.SEQUENTIAL).path for _ in range(2)]
    tree.delete(paths[0])
    paths.append(tree.create("/p/n-", kind=NodeKind.SEQUENTIAL | EPHEMERAL, session=A).path)
    assert paths == ["/p/n-0000000001", "/p/n-0000000002", "/p/n-0000000003"]
    tree.close(A)
    assert tree.children("/p") == ("other", "n-0000000002")


def test_a_watch_on_children_fires_for_the_next_that_comes_or_goes_and_of_no_write() -> None:
    tree = grown()
    tree.children("/a", A)
    tree.children("/a", B)
    assert tree.write("/a/b", 7) == ()
    changed = EventType.NODE_CHILDREN_CHANGED
    assert tree.delete("/a/b") == (WatchedEvent(A, changed, "/a"), WatchedEvent(B, changed, "/a"))
    assert tree.create("/a/c").events == ()


def test_who_watches_a_node_and_its_children_is_notified_once_that_it_is_gone() -> None:
    tree = grown()
    tree.get("/a/b", A)
    tree.children("/a/b", A)
    tree.children("/a/b", B)
    tree.children("/a", B)
    assert tree.delete("/a/b") == (
        WatchedEvent(A, EventType.NODE_DELETED, "/a/b"),
        WatchedEvent(B, EventType.NODE_DELETED, "/a/b"),
        WatchedEvent(B, EventType.NODE_CHILDREN_CHANGED, "/a"),
    )


PATHS = ("/a", "/b", "/a/c", "/a/d", "/a/c/e")
ACTIONS = st.tuples(
    st.sampled_from(("create", "ephemeral", "write", "delete", "open", "close", "watch")),
    st.sampled_from(PATHS),
    st.sampled_from((A, B)),
    st.integers(-1, 2),
)


class Plain:
    """The same in the plainest way: path to (version, owner), and who waits for a change of a path's data."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[int, Session | None]] = {}
        self.sessions: set[Session] = set()
        self.waiting: set[tuple[str, Session]] = set()

    def parent(self, path: str) -> str:
        return path.rsplit("/", 1)[0]

    def may_create(self, path: str) -> bool:
        parent = self.parent(path)
        is_there = parent == "" or (parent in self.nodes and self.nodes[parent][1] is None)
        return is_there and path not in self.nodes

    def may_delete(self, path: str, version: int) -> bool:
        return self.has(path, version) and not any(self.parent(other) == path for other in self.nodes)

    def has(self, path: str, version: int) -> bool:
        return path in self.nodes and version in (-1, self.nodes[path][0])

    def fire(self, path: str) -> set[tuple[str, Session]]:
        fired = {each for each in self.waiting if each[0] == path}
        self.waiting -= fired
        return fired

    def do(self, name: str, path: str, session: Session, version: int) -> set[tuple[str, Session]] | None:
        """Return who is notified; None where it is refused."""
        if name == "open":
            self.sessions.add(session)
        elif name == "close":
            self.sessions.discard(session)
            self.waiting = {each for each in self.waiting if each[1] != session}
            gone = [each for each, (_, owner) in self.nodes.items() if owner == session]
            for each in gone:
                del self.nodes[each]
            return {events for each in gone for events in self.fire(each)}
        elif session not in self.sessions:
            return None
        elif name == "watch":
            self.waiting.add((path, session))
        elif name in ("create", "ephemeral"):
            if not self.may_create(path):
                return None
            self.nodes[path] = (0, session if name == "ephemeral" else None)
            return self.fire(path)
        elif name == "write":
            if not self.has(path, version):
                return None
            self.nodes[path] = (self.nodes[path][0] + 1, self.nodes[path][1])
            return self.fire(path)
        elif not self.may_delete(path, version):
            return None
        else:
            del self.nodes[path]
            return self.fire(path)
        return set()


def done(tree: Tree, name: str, path: str, session: Session, version: int) -> tuple[WatchedEvent, ...]:
    if name == "open":
        tree.open(session)
    elif name == "close":
        return tree.close(session)
    elif name == "watch":
        tree.exists(path, session)
    elif name == "create":
        return tree.create(path, 0, session=session).events
    elif name == "ephemeral":
        return tree.create(path, 0, EPHEMERAL, session).events
    elif name == "write":
        return tree.write(path, 0, version, session)
    else:
        return tree.delete(path, version, session)
    return ()


@given(st.lists(ACTIONS, max_size=60))
def test_any_row_of_operations_does_what_a_plain_dictionary_says(
    actions: list[tuple[str, str, Session, int]],
) -> None:
    tree, plain = Tree(), Plain()
    for action in actions:
        expected = plain.do(*action)
        try:
            events = done(tree, *action)
        except ZnodeRefusedError:
            assert expected is None, action
        else:
            assert {(each.path, each.session) for each in events} == expected, action
        tree.check_invariants()
        found = {path: stat for path in PATHS if (stat := tree.exists(path)) is not None}
        assert {path: (stat.version, stat.owner) for path, stat in found.items()} == plain.nodes
