"""Random lives of groups in which ours and Kafka's own assignors must say the same at every step.

What it decides: whether, for one seeded life, both answer each step alike: client-side ones with the same lists in the
same order, server-side ones with the same sets, or an exception of the same Java class with the same message.

Constraints: life k of an assignor is a function of (seed, assignor, k) alone; lives grow with k, but for a large one
now and then.

How
A life has up to five steps. Between them members join, leave, change subscriptions or come back under another id,
topics come and grow; each member then holds what Kafka gave it. Now and then what it claims is spoilt: an old
generation, a partition of somebody else's, one that does not exist, nothing at all. Names collide in Java's hash on
purpose, so often that bins become trees.

Example: check(kafka, "sticky", seed=1, case=17) raises AssertionError on a difference.

Left out: partitions beyond the end of their topic in the large lives, where Kafka's loops need not end.
"""

from __future__ import annotations

import random
from base64 import urlsafe_b64encode
from typing import Final

import attrs

from broker.entropy import SplitMix64
from broker.errors import RefusedError
from broker.ids import PartitionId, TopicPartition
from placement.consumer.group import Group, Member, Topic
from placement.consumer.registry import KAFKAS, load_assignor
from tests.kafka.assignor_jvm import Answer, AssignorJvm
from tests.kafka.differential import ONE_BIN_NAMES, RACK_NAMES
from tests.kafka.jvm import KafkaError

GROWING_CASE_COUNT: Final = 1000
LARGE_EVERY: Final = 50
LARGE_SIZE: Final = 40
STEP_COUNT_MAX: Final = 5
CLIENTS: Final = ("cooperative-sticky", "range", "roundrobin", "sticky")
COLLIDING: Final = ("Aa", "BB", "AaAa", "BBBB", "AaBB", "BBAa", "é", "\U0001f600", "z", "Z", "_")


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
            name = urlsafe_b64encode(self.chance.randbytes(16)).rstrip(b"=").decode()
        self.topics.append(self._topic(name, self.chance.randrange(1 + self.size)))

    def _topic(self, name: str, count: int) -> Topic:
        racks = None
        if self.racked and self.chance.random() < 0.9:
            names = RACK_NAMES[:4]
            racks = tuple(tuple(self.chance.sample(names, self.chance.randrange(3))) for _ in range(count))
        return Topic(name=name, partition_count=count, replica_racks=racks)

    def _name(self, kind: str, taken: list[str]) -> str:
        while True:
            pool = self.chance.randrange(4)
            if pool == 0:
                name = self.chance.choice(COLLIDING)
            elif pool == 1:
                name = self.chance.choice(ONE_BIN_NAMES)
            else:
                name = f"{kind}-{self.chance.randrange(1000)}"
            if name not in taken:
                return name

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
        """Return topics to subscribe to: all of them in groups of equals, else some, now and then none or unknown."""
        names = [topic.name for topic in self.topics]
        if not self.equal:
            names = [name for name in names if self.chance.random() < 0.5]
            if not self.served and self.chance.random() < 0.05:
                names.append("unknown")
        self.chance.shuffle(names)
        return tuple(names)

    def change(self) -> None:
        """Let one thing happen to the group."""
        event = self.chance.randrange(6)
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
            if self.equal:
                topics = self.subscription()
                self.members = [attrs.evolve(member, topics=topics) for member in self.members]

    def hold(self, answer: dict[str, list[tuple[str, int]]]) -> None:
        """Let members hold what they were given, but for what is spoilt."""
        self.generation += 1
        self.members = [self._holding(member, answer.get(member.id, [])) for member in self.members]

    def _holding(self, member: Member, given: list[tuple[str, int]]) -> Member:
        chance = self.chance
        # Sets of the server's have no order; their lists are put in, as its map and sets would hold them.
        owned = [
            TopicPartition(topic, PartitionId(number)) for topic, number in (sorted(given) if self.served else given)
        ]
        generation, subscribed = self.generation, None
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
        if self.served:
            owned.sort()
        return attrs.evolve(member, owned=tuple(owned), generation=generation, subscription_generation=subscribed)


def check(kafka: AssignorJvm, assignor: str, *, seed: int, case: int) -> None:
    """Draw life number `case` of an assignor, ask both at each step, and raise AssertionError unless they agree."""
    chance = random.Random(f"{seed}/{assignor}/{case}")
    size = LARGE_SIZE if case % LARGE_EVERY == LARGE_EVERY - 1 else 2 + min(case, GROWING_CASE_COUNT) // 60
    served = assignor not in CLIENTS
    life = Life.begin(chance, size, served=served, announcing=assignor == "cooperative-sticky")
    # The release that answers no longer has the defect of `uniform` that the golden vectors have.
    ours = load_assignor(assignor, corrected=assignor == "uniform")
    kafka.begin(assignor)
    for step in range(1 + chance.randrange(STEP_COUNT_MAX)):
        group = Group.of(life.members, life.topics)
        theirs = kafka.assign(group)
        answer: Answer
        try:
            assignment = ours.assign(group, SplitMix64(0))
            members = () if assignment.silent else group.members
            answer = {name: [(one.topic, one.partition) for one in assignment.of(name)] for name in members}
        except RefusedError as refusal:
            answer = KafkaError(refusal.kafka_class, str(refusal))
        if served and isinstance(answer, dict) and isinstance(theirs, dict):
            answer, theirs = _sets(answer), _sets(theirs)
        assert answer == theirs, f"step {step}\nours   {answer}\ntheirs {theirs}\ngroup {life.members}\n{life.topics}"
        if not isinstance(theirs, dict):
            return
        life.hold(theirs)
        life.change()


def _sets(answer: dict[str, list[tuple[str, int]]]) -> dict[str, list[tuple[str, int]]]:
    return {member: sorted(set(rows)) for member, rows in answer.items()}


ASSIGNORS: Final = tuple(sorted(KAFKAS))
