"""Draw random lives of consumer groups: several steps, with names that collide in Java's hash.

What it decides: which groups our assignors and Kafka's are asked about.

Constraints: a life is a function of the generator that is passed, and of what Kafka answered at each step.

How: between two steps members join, leave, change subscriptions or come back under another id, topics come, grow
and are deleted; each member then holds what Kafka gave it. Now and then what a member claims is spoilt: an old
generation, a partition of somebody else's, a partition twice, a partition that does not exist, nothing at all. A
member may name a topic twice. Names collide in Java's hash on purpose: whole names ("Aa" and "BB"), partitions of
different topics ("t11-1" and "t21-0"), and so many names in one bin that it becomes a tree.

Left out: partitions beyond the end of their topic in large lives, where Kafka's loops need not end.
"""

from __future__ import annotations

import random
from base64 import urlsafe_b64encode
from typing import Final

import attrs

from broker.ids import PartitionId, TopicPartition
from broker.java.string_hash import java_string_hash
from placement.consumer.group import Member, Topic

RACK_NAMES: Final = ("a", "b", "A", "9", "10", "_", "", "Aa", "BB", "AaAa", "BBBB", "AaBB", "é", "\U0001f600", "rack-1")
ONE_BIN: Final = 5
ONE_BIN_NAMES: Final = [
    name
    for name in map("bin-{}".format, range(6000))
    if ((java_string_hash(name) % 2**32) ^ (java_string_hash(name) % 2**32 >> 16)) % 64 == ONE_BIN
]
"""Names that share a bin of a table of 64, and some of them of larger ones, though their hashes differ."""
COLLIDING: Final = ("Aa", "BB", "AaAa", "BBBB", "AaBB", "BBAa", "é", "\U0001f600", "z", "Z", "_")
# The hash of a partition is 31 * (31 + number) plus that of the topic's name, and these names are 1 and 31 apart.
NEIGHBOURS: Final = tuple(f"t{tens}{ones}" for tens in range(1, 6) for ones in range(1, 4))


@attrs.define
class Life:
    """One group while it is drawn: who is in it, and what there is to read.

    `served`: for the server's assignors; `announcing`: for one that believes the generation in the subscription.
    """

    chance: random.Random
    size: int
    served: bool
    announcing: bool
    racked: bool
    equal: bool
    topics: list[Topic] = attrs.field(factory=list)
    members: list[Member] = attrs.field(factory=list)
    generation: int = 0

    @classmethod
    def begin(cls, chance: random.Random, size: int, *, served: bool, announcing: bool) -> Life:
        """Return a group of a few members and topics."""
        life = cls(chance, size, served, announcing, racked=chance.random() < 0.3, equal=chance.random() < 0.5)
        for _ in range(1 + chance.randrange(1 + size // 2)):
            life.add_topic()
        for _ in range(chance.randrange(1, 2 + size)):
            life.join()
        return life

    def add_topic(self) -> None:
        """Add a topic, with racks when replicas have them."""
        name = self._name("topic", [topic.name for topic in self.topics])
        if self.served:
            name = self._id()
        self.topics.append(self._topic(name, self.chance.randrange(1 + self.size)))

    def _id(self) -> str:
        # Few low bits, so that ids share bins of Java's tables, and now and then all bits of their hash.
        value = bytearray(self.chance.randbytes(16))
        if self.chance.random() < 0.5:
            value[8:] = value[:8]
            value[15] ^= self.chance.choice((0, 1, 16))
        return urlsafe_b64encode(bytes(value)).rstrip(b"=").decode()

    def _topic(self, name: str, count: int) -> Topic:
        racks = None
        if self.racked and self.chance.random() < 0.9:
            names = RACK_NAMES[:4]
            racks = tuple(tuple(self.chance.sample(names, self.chance.randrange(3))) for _ in range(count))
        return Topic(name=name, partition_count=count, replica_racks=racks)

    def _name(self, kind: str, taken: list[str]) -> str:
        for _ in range(1000):
            pool = self.chance.randrange(5)
            if pool < 3:
                name = self.chance.choice((COLLIDING, ONE_BIN_NAMES, NEIGHBOURS)[pool])
            else:
                name = f"{kind}-{self.chance.randrange(1000)}"
            if name not in taken:
                return name
        raise AssertionError("all names are taken")

    def join(self) -> None:
        """Add a member."""
        chance = self.chance
        static = chance.random() < 0.2
        member = Member(
            id=self._name("consumer", [one.id for one in self.members]),
            topics=self.subscription(),
            instance_id=f"i{chance.randrange(100)}" if static else None,
            rack=chance.choice((*RACK_NAMES[:4], "", None)) if self.racked else None,
        )
        self.members.insert(chance.randrange(len(self.members) + 1), member)

    def subscription(self) -> tuple[str, ...]:
        """Return topics to subscribe to: all of them in groups of equals, else some, none, unknown or repeated ones."""
        names = [topic.name for topic in self.topics]
        if not self.equal:
            names = [name for name in names if self.chance.random() < 0.5]
            if not self.served and self.chance.random() < 0.05:
                names.append("unknown")
        if names and self.chance.random() < 0.05:
            names.append(self.chance.choice(names))
        self.chance.shuffle(names)
        return tuple(names)

    def change(self) -> None:
        """Let one or two things happen to the group."""
        for _ in range(self.chance.choice((1, 1, 2))):
            self._change()

    def _change(self) -> None:
        event = self.chance.randrange(8)
        if event == 0:
            self.join()
        elif event == 1 and len(self.members) > 1:
            self.members.pop(self.chance.randrange(len(self.members)))
        elif event == 2:
            place = self.chance.randrange(len(self.topics))
            old = self.topics[place]
            self.topics[place] = self._topic(old.name, old.partition_count + self.chance.randrange(3))
        elif event == 3 and self.members:
            place = self.chance.randrange(len(self.members))
            self.members[place] = attrs.evolve(self.members[place], topics=self.subscription())
        elif event == 4:
            self.add_topic()
            self._subscribe_anew()
        elif event == 5 and len(self.topics) > 1:
            # A topic is deleted; members may go on naming and claiming it where they do not subscribe alike.
            self.topics.pop(self.chance.randrange(len(self.topics)))
            if self.served:
                self._forget_deleted()
            self._subscribe_anew()
        elif event == 6 and self.members:
            place = self.chance.randrange(len(self.members))
            taken = [one.id for one in self.members]
            self.members[place] = attrs.evolve(self.members[place], id=self._name("consumer", taken))

    def _subscribe_anew(self) -> None:
        if self.equal:
            topics = self.subscription()
            self.members = [attrs.evolve(member, topics=topics) for member in self.members]

    def _forget_deleted(self) -> None:
        known = {topic.name for topic in self.topics}
        self.members = [
            attrs.evolve(
                member,
                topics=tuple(name for name in member.topics if name in known),
                owned=tuple(one for one in member.owned if one.topic in known),
            )
            for member in self.members
        ]

    def hold(self, answer: dict[str, list[tuple[str, int]]]) -> None:
        """Let members hold what they were given, but for what is spoilt."""
        self.generation += 1
        self.members = [self._holding(member, answer.get(member.id, [])) for member in self.members]

    def _holding(self, member: Member, given: list[tuple[str, int]]) -> Member:
        chance = self.chance
        owned = [TopicPartition(topic, PartitionId(number)) for topic, number in given]
        generation, subscribed = self.generation, None
        if self.served:
            # Kafka keeps sets: neither order nor repetition of what is listed may show.
            chance.shuffle(owned)
            owned += owned[: chance.choice((0, 0, 0, 1))]
        if chance.random() < 0.1:
            owned, generation = owned[: chance.randrange(len(owned) + 1)], chance.randrange(-1, self.generation + 1)
        if chance.random() < 0.1 and not self.served:
            subscribed = chance.randrange(-1, self.generation + 1)
            if self.announcing and subscribed >= 0:
                generation = subscribed
        if chance.random() < 0.1:
            topic = chance.choice(self.topics)
            beyond = 1 if self.size < 10 and not self.served and chance.random() < 0.2 else 0
            count = topic.partition_count + beyond
            extra = TopicPartition(topic.name, PartitionId(chance.randrange(max(1, count))))
            if count and extra not in owned:
                owned.append(extra)
        return attrs.evolve(member, owned=tuple(owned), generation=generation, subscription_generation=subscribed)
