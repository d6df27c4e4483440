"""Note the requests of consumers that coordinate themselves through ZooKeeper, as they reach its tree.

What it decides: what the requests of a herd amount to: reads and writes, views that differ, claims that were refused,
who is told of a change, who owns what, and how long partitions had no owner.

Source: ours; the rules are those of kafka.consumer.ZookeeperConsumerConnector 0.8.2 (rebalance).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from broker.group.zookeeper.herd import IDS, OWNERS
from broker.zookeeper import CreateResult, NodeKind, Session, WatchedEvent, ZnodeRefusedError, ZnodeTree


@attrs.define
class HerdNotes(ZnodeTree[None]):
    """Note what reaches the tree: how often it was read and written, by whom, and how long partitions had no owner."""

    clock: Callable[[], int]
    partition_count: int
    dead: set[str] = attrs.field(factory=set)
    views: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    owner_of: dict[int, str] = attrs.field(factory=dict)
    refused: set[str] = attrs.field(factory=set)
    """The consumers whose last claim was refused."""
    told: str = ""
    read_count: int = 0
    write_count: int = 0
    disagreement_count: int = 0
    unowned_ms: int = 0
    look_count: dict[str, int] = attrs.field(factory=dict)
    conflicts: dict[str, list[int]] = attrs.field(factory=dict)
    woken: list[str] = attrs.field(factory=list)
    _last_ms: int = 0

    def __attrs_post_init__(self) -> None:
        super().__init__()
        for path in (IDS, OWNERS):
            self.make_way(path)

    def begin(self) -> None:
        """Forget what was counted up to the last report."""
        self.read_count = self.write_count = self.disagreement_count = self.unowned_ms = 0
        self.look_count, self.conflicts, self.woken = {}, {}, []
        self._last_ms = self.clock()

    def pass_by(self) -> None:
        """Count the time without an owner, since the last request, of every partition that a live consumer lacks."""
        owned_count = sum(name not in self.dead for name in self.owner_of.values())
        self.unowned_ms += (self.partition_count - owned_count) * (self.clock() - self._last_ms)
        self._last_ms = self.clock()

    def children(self, path: str, watcher: Session | None = None) -> tuple[str, ...]:
        """Note who reads which members, and when after a refused claim."""
        names = super().children(path, watcher)
        self.read_count += 1 + len(names)
        if watcher is not None:
            self._comes(watcher)
            self.views[watcher] = view = tuple(sorted(names))
            others = [each for name, each in self.views.items() if name != watcher and name not in self.dead]
            self.disagreement_count += any(each != view for each in others)
            self.look_count[watcher] = self.look_count.get(watcher, 0) + 1
        return names

    def create(
        self, path: str, data: None = None, kind: NodeKind = NodeKind.PERSISTENT, session: Session | None = None
    ) -> CreateResult:
        """Note who registers, and who claims what."""
        if session is None:
            return super().create(path, data, kind, session)
        self._comes(session)
        self.write_count += 1
        is_claim = path.startswith(OWNERS)
        if is_claim:
            self._claims(session, int(path.removeprefix(f"{OWNERS}/")))
        try:
            made = super().create(path, data, kind, session)
        except ZnodeRefusedError:
            self.conflicts.setdefault(session, []).append(self.clock())
            self.refused.add(session)
            raise
        if is_claim:
            self.owner_of[int(path.removeprefix(f"{OWNERS}/"))] = session
        self.woken += [each.session for each in made.events if each.session not in self.dead]
        return made

    def delete(self, path: str, version: int = -1, session: Session | None = None) -> tuple[WatchedEvent, ...]:
        """Note who gives back what."""
        assert session is not None
        self._comes(session)
        self.write_count += 1
        owner = self.owner_of.pop(int(path.removeprefix(f"{OWNERS}/")), None)
        self.told = self.told or ("" if owner == session else f"{session} gives back {path}, which {owner} has")
        return super().delete(path, version, session)

    def close(self, session: Session) -> tuple[WatchedEvent, ...]:
        """Note whose session ends."""
        self.pass_by()
        self.owner_of = {each: name for each, name in self.owner_of.items() if name != session}
        events = super().close(session)
        self.woken += [each.session for each in events if each.session not in self.dead]
        return events

    def _comes(self, session: Session) -> None:
        self.pass_by()
        if session in self.dead:
            self.told = self.told or f"{session} is dead, and goes on"

    def _claims(self, session: Session, partition: int) -> None:
        """See that a consumer claims only what it has by the members that it read."""
        self.refused.discard(session)
        view = self.views.get(session, ())
        if not view or by_ranges(view, self.partition_count)[partition] != session:
            self.told = self.told or f"{session} claims {partition}, having read {view}"


def by_ranges(names: Sequence[str], partition_count: int) -> list[str]:
    """Return who has each partition: ranges by names in order, the first of which have one more."""
    each, more = divmod(partition_count, len(names))
    return [name for place, name in enumerate(names) for _ in range(each + 1 if place < more else each)]
