"""Define ZooKeeper's error codes.

Source: Apache ZooKeeper KeeperException.Code, 3.5 to 3.9.
"""

from __future__ import annotations

import enum

from broker.errors import RefusedError


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
