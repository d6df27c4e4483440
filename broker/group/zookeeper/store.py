"""As much of ZooKeeper as consumers of before 0.9 used: ephemeral nodes and one-shot watches on children.
 Decides who is told of what. A watch fires once, for everybody who set one; what has happened meanwhile each has to
read.

Constraints: a node belongs to the session that made it and goes with it; making a node that is there fails. Nodes and
watchers are kept in the order in which they came, so that a run is the same each time.

Source: Apache ZooKeeper Programmer's Guide (ephemeral nodes, watches); kafka.utils.ZkUtils, 0.8.2, for the paths.
"""

from __future__ import annotations

from typing import NewType

Session = NewType("Session", str)


class NodeStore:
    """The nodes, and who watches which parent's children."""

    def __init__(self) -> None:
        self._owners: dict[str, dict[str, Session]] = {}
        self._watchers: dict[str, dict[Session, None]] = {}
        self.read_count = 0
        self.write_count = 0

    def children(self, parent: str, watcher: Session | None = None) -> dict[str, Session]:
        """Return the names below `parent` and who made each, a read for the list and one for every node.

        `watcher` is told of the next change.
        """
        self.read_count += 1 + len(self._owners.get(parent, {}))
        if watcher is not None:
            self._watchers.setdefault(parent, {})[watcher] = None
        return dict(self._owners.get(parent, {}))

    def create(self, parent: str, name: str, session: Session) -> tuple[Session, ...] | None:
        """Make a node and return who has to be told; None, and nothing done, where it is there already."""
        self.write_count += 1
        nodes = self._owners.setdefault(parent, {})
        if name in nodes:
            return None
        nodes[name] = session
        return self._fired(parent)

    def delete(self, parent: str, name: str, session: Session) -> tuple[Session, ...]:
        """Remove a node of `session`'s and return who has to be told; nobody where it is not there."""
        self.write_count += 1
        if self._owners.get(parent, {}).get(name) != session:
            return ()
        del self._owners[parent][name]
        return self._fired(parent)

    def expire(self, session: Session) -> tuple[Session, ...]:
        """Remove all nodes of a session that has ended, and return who has to be told, each once."""
        told: dict[Session, None] = {}
        for watchers in self._watchers.values():
            watchers.pop(session, None)
        for parent, nodes in self._owners.items():
            mine = [name for name, owner in nodes.items() if owner == session]
            for name in mine:
                del nodes[name]
            if mine:
                told.update(dict.fromkeys(self._fired(parent)))
        return tuple(told)

    def _fired(self, parent: str) -> tuple[Session, ...]:
        return tuple(self._watchers.pop(parent, {}))
