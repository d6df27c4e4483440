"""Model one ZooKeeper: a tree of znodes with versions, sessions with their ephemeral nodes, and watches.

What it decides: which operations are refused, what each operation changes, and which watches it fires. The caller
interprets the data and keeps the time: the caller closes a session that has been silent for too long.

Constraints: a refused operation changes nothing and sets no watch. A notification must arrive before the response to
the operation and to any later read: operations return the fired watches, and the caller keeps that order. Nodes and
watchers are kept in the order in which they came, so that equal runs give equal results.

How: a watch on data is set by `get` and `exists`, one on children by `children`. A node made fires the data watches
on it (those of `exists`) and the children watches on its parent; a node written fires its data watches; a node removed
fires both of its own, once for a session that set both, and the children watches of its parent. A sequential
node's number counts the children that its parent ever had. A transaction number rises with each change.

Example: two sessions create "/controller"; the first succeeds, the second is refused with NODE_EXISTS and sets a watch
by `exists`. `close(first)` removes the node and returns the second's watch, with NODE_DELETED.

Left out: the ensemble and its quorum, quotas and access control lists, containers and times to live, watches that
stay (3.6), local sessions. Several operations as one are a row of calls here, as nobody can come between them.

Source: Apache ZooKeeper KeeperException.Code, DataTree, PrepRequestProcessor and WatchManager, 3.5; its Programmer's
Guide.
"""

from __future__ import annotations

import enum
from typing import Final, Generic, NewType, TypeVar

import attrs

from broker.errors import RefusedError

Session = NewType("Session", str)
Data = TypeVar("Data")

ANY_VERSION: Final = -1
"""In place of a version: whichever the node has."""

_ROOT: Final = "/"
_NUMBER_FORM: Final = "{:010d}"


class ZnodeCode(enum.Enum):
    """List ZooKeeper's reasons to refuse an operation, with their numbers."""

    BAD_ARGUMENTS = -8
    """The path is none."""

    NO_NODE = -101
    """The node, or the parent of the one to be made, is not there."""

    BAD_VERSION = -103
    """The node has another version than the caller believes: somebody else has written it."""

    NO_CHILDREN_FOR_EPHEMERALS = -108
    """A node that goes with its session has no children."""

    NODE_EXISTS = -110
    """The node is there already."""

    NOT_EMPTY = -111
    """The node has children."""

    SESSION_EXPIRED = -112
    """The session has ended, or never began."""


class ZnodeRefusedError(RefusedError):
    """ZooKeeper refuses an operation on `path` with `code`."""

    kafka_class = "org.apache.zookeeper.KeeperException"

    def __init__(self, code: ZnodeCode, path: str) -> None:
        self.code = code
        self.path = path
        shown = "".join(part.capitalize() for part in code.name.split("_"))
        super().__init__(f"KeeperErrorCode = {shown} for {path}")


class NodeKind(enum.Flag):
    """List the flags of a created node (ZooKeeper's CreateMode), which may be combined."""

    PERSISTENT = 0
    """The node stays until it is deleted, under the name given."""

    EPHEMERAL = enum.auto()
    """The node is deleted when the session that created it ends."""

    SEQUENTIAL = enum.auto()
    """A number is appended to the node's name, the number of children that its parent ever had."""


class EventType(enum.Enum):
    """List the kinds of change that fire a watch; names are those of ZooKeeper's EventType."""

    NODE_CREATED = enum.auto()
    """A node that was not there when it was asked for is."""

    NODE_DELETED = enum.auto()
    """The node is gone."""

    NODE_DATA_CHANGED = enum.auto()
    """The node was written."""

    NODE_CHILDREN_CHANGED = enum.auto()
    """A child was made or removed."""


@attrs.frozen
class WatchedEvent:
    """Notify a session of a fired watch: the kind of change and the path, without the node's data."""

    session: Session
    kind: EventType
    path: str


@attrs.frozen(kw_only=True)
class Stat:
    """Describe a node: `created` and `modified` are transaction ids, `owner` is an ephemeral node's session.

    `version` counts the writes of the data, `child_version` the children made and removed.
    """

    version: int
    child_version: int
    created: int
    modified: int
    owner: Session | None


@attrs.frozen
class Znode(Generic[Data]):
    """Hold a node as a session read it; `data` is None if the node was created without data."""

    data: Data | None
    stat: Stat


@attrs.frozen
class CreateResult:
    """Hold the result of a create: the path, numbered for a sequential node, and the watches that fired."""

    path: str
    events: tuple[WatchedEvent, ...]


@attrs.define(eq=False)
class _Node(Generic[Data]):
    data: Data | None
    created: int
    modified: int
    owner: Session | None = None
    version: int = 0
    made_count: int = 0
    children: dict[str, None] = attrs.field(factory=dict)

    @property
    def stat(self) -> Stat:
        return Stat(
            version=self.version,
            # Each child was made, and those that are missing were removed, too.
            child_version=2 * self.made_count - len(self.children),
            created=self.created,
            modified=self.modified,
            owner=self.owner,
        )


class ZnodeTree(Generic[Data]):
    """Hold the nodes and the open sessions; `transaction` is the id of the last change."""

    def __init__(self) -> None:
        self.transaction = 0
        self._nodes: dict[str, _Node[Data]] = {_ROOT: _Node(None, 0, 0)}
        self._sessions: dict[Session, dict[str, None]] = {}
        """The nodes that go with each session that is open."""
        self._data_watches: dict[str, dict[Session, None]] = {}
        self._child_watches: dict[str, dict[Session, None]] = {}

    # Sessions.

    def open(self, session: Session) -> None:
        """Open a session; do nothing if it is open."""
        self._sessions.setdefault(session, {})

    def is_open(self, session: Session) -> bool:
        """Return whether a session is open."""
        return session in self._sessions

    def close(self, session: Session) -> tuple[WatchedEvent, ...]:
        """Close or expire a session, remove its ephemeral nodes, and return the watches that fired."""
        for watches in (self._data_watches, self._child_watches):
            for watchers in watches.values():
                watchers.pop(session, None)
        events: list[WatchedEvent] = []
        for path in self._sessions.pop(session, {}):
            events += self._removed(path)
        return tuple(events)

    # Reading.

    def get(self, path: str, watcher: Session | None = None) -> Znode[Data]:
        """Return a node and set a data watch for `watcher`; raise NO_NODE, without a watch, if the node is missing."""
        node = self._node(path)
        self._watch(self._data_watches, path, watcher)
        return Znode(node.data, node.stat)

    def exists(self, path: str, watcher: Session | None = None) -> Stat | None:
        """Return a node's Stat, None if the node is missing, and set a data watch for `watcher` in both cases."""
        self._watch(self._data_watches, path, watcher)
        node = self._nodes.get(path)
        return None if node is None else node.stat

    def children(self, path: str, watcher: Session | None = None) -> tuple[str, ...]:
        """Return the names of a node's children, oldest first, and set a child watch for `watcher`."""
        node = self._node(path)
        self._watch(self._child_watches, path, watcher)
        return tuple(node.children)

    # Writing.

    def create(
        self, path: str, data: Data | None = None, kind: NodeKind = NodeKind.PERSISTENT, session: Session | None = None
    ) -> CreateResult:
        """Create a node; an ephemeral node belongs to `session`.

        Raise SESSION_EXPIRED, BAD_ARGUMENTS for a path that is none, NO_NODE without a parent, NODE_EXISTS, and
        NO_CHILDREN_FOR_EPHEMERALS, looked for in this order.
        """
        is_ephemeral = NodeKind.EPHEMERAL in kind
        assert session is not None or not is_ephemeral, path
        self._check_session(session, path)
        _check_path(path)
        parent_path = _parent_of(path)
        parent = self._nodes.get(parent_path)
        if parent is None:
            raise ZnodeRefusedError(ZnodeCode.NO_NODE, path)
        if NodeKind.SEQUENTIAL in kind:
            path += _NUMBER_FORM.format(parent.made_count)
        if path in self._nodes:
            raise ZnodeRefusedError(ZnodeCode.NODE_EXISTS, path)
        if parent.owner is not None:
            raise ZnodeRefusedError(ZnodeCode.NO_CHILDREN_FOR_EPHEMERALS, path)
        self.transaction += 1
        self._nodes[path] = _Node(data, self.transaction, self.transaction, session if is_ephemeral else None)
        parent.children[_name_of(path)] = None
        parent.made_count += 1
        if session is not None and is_ephemeral:
            self._sessions[session][path] = None
        events = self._fired(self._data_watches, path, EventType.NODE_CREATED)
        return CreateResult(
            path, (*events, *self._fired(self._child_watches, parent_path, EventType.NODE_CHILDREN_CHANGED))
        )

    def make_way(self, path: str) -> tuple[WatchedEvent, ...]:
        """Create `path` and its missing parents as persistent nodes without data."""
        events: list[WatchedEvent] = []
        names = path.strip(_ROOT).split(_ROOT)
        for depth in range(1, len(names) + 1):
            part = _ROOT + _ROOT.join(names[:depth])
            if part not in self._nodes:
                events += self.create(part).events
        return tuple(events)

    def check(self, path: str, version: int) -> None:
        """Raise NO_NODE or BAD_VERSION unless the node exists with that version."""
        node = self._node(path)
        if version not in (ANY_VERSION, node.version):
            raise ZnodeRefusedError(ZnodeCode.BAD_VERSION, path)

    def write(
        self, path: str, data: Data, version: int = ANY_VERSION, session: Session | None = None
    ) -> tuple[WatchedEvent, ...]:
        """Write a node if its version is the expected one; raise SESSION_EXPIRED, NO_NODE or BAD_VERSION."""
        self._check_session(session, path)
        self.check(path, version)
        node = self._nodes[path]
        self.transaction += 1
        node.data, node.version, node.modified = data, node.version + 1, self.transaction
        return self._fired(self._data_watches, path, EventType.NODE_DATA_CHANGED)

    def delete(self, path: str, version: int = ANY_VERSION, session: Session | None = None) -> tuple[WatchedEvent, ...]:
        """Delete a node; raise SESSION_EXPIRED, BAD_ARGUMENTS for the root, NO_NODE, BAD_VERSION or NOT_EMPTY."""
        self._check_session(session, path)
        _check_path(path)
        self.check(path, version)
        if self._nodes[path].children:
            raise ZnodeRefusedError(ZnodeCode.NOT_EMPTY, path)
        return self._removed(path)

    def check_invariants(self) -> None:
        """Assert that each node has a parent, and that ephemeral nodes have open sessions and no children."""
        for path, node in self._nodes.items():
            if path != _ROOT:
                assert _name_of(path) in self._nodes[_parent_of(path)].children, path
            for name in node.children:
                assert f"{path.rstrip(_ROOT)}/{name}" in self._nodes, (path, name)
            if node.owner is not None:
                assert not node.children, path
                assert path in self._sessions[node.owner], path
        owned = sum(len(paths) for paths in self._sessions.values())
        assert owned == sum(node.owner is not None for node in self._nodes.values()), owned

    def _removed(self, path: str) -> tuple[WatchedEvent, ...]:
        node, parent_path = self._nodes.pop(path), _parent_of(path)
        self.transaction += 1
        del self._nodes[parent_path].children[_name_of(path)]
        if node.owner in self._sessions:
            del self._sessions[node.owner][path]
        events = self._fired(self._data_watches, path, EventType.NODE_DELETED)
        twice = self._fired(self._child_watches, path, EventType.NODE_DELETED)
        events += tuple(each for each in twice if each not in events)
        return events + self._fired(self._child_watches, parent_path, EventType.NODE_CHILDREN_CHANGED)

    def _fired(self, watches: dict[str, dict[Session, None]], path: str, kind: EventType) -> tuple[WatchedEvent, ...]:
        return tuple(WatchedEvent(session, kind, path) for session in watches.pop(path, {}))

    def _watch(self, watches: dict[str, dict[Session, None]], path: str, watcher: Session | None) -> None:
        if watcher is not None:
            self._check_session(watcher, path)
            watches.setdefault(path, {})[watcher] = None

    def _node(self, path: str) -> _Node[Data]:
        node = self._nodes.get(path)
        if node is None:
            raise ZnodeRefusedError(ZnodeCode.NO_NODE, path)
        return node

    def _check_session(self, session: Session | None, path: str) -> None:
        if session is not None and session not in self._sessions:
            raise ZnodeRefusedError(ZnodeCode.SESSION_EXPIRED, path)


def _check_path(path: str) -> None:
    """Raise BAD_ARGUMENTS for a path that is relative, the root, ends in a slash or has an empty or dotted part."""
    names = path.split(_ROOT)
    if path == _ROOT or names[0] or any(name in ("", ".", "..") or "\0" in name for name in names[1:]):
        raise ZnodeRefusedError(ZnodeCode.BAD_ARGUMENTS, path)


def _parent_of(path: str) -> str:
    return path.rpartition(_ROOT)[0] or _ROOT


def _name_of(path: str) -> str:
    return path.rpartition(_ROOT)[2]
