"""Run one group's member in a cluster of a few lines, and see that its process, its timers and its fetches are right.

What it decides: the protocol, what befalls the process and when, and all of `member_world`, from a seed. After a storm
all is calm, and the member must have read nearly all.

Constraints: what the member does is compared with lists of what happened: when its process started, stood still and
ended, what it sent, what was delivered (`member_talk`, `member_fetches`). A frozen process does nothing; who ends by
itself is started again after 5 s; a lost request is noticed within two probes, 1 s each.

Source: ours, as `replication.groups.member`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from broker.units import TimeMs
from replication.groups.client.messages import Died
from replication.groups.common.events import Event, EventKind
from replication.groups.connection_messages import EventDue, MemberDue, ProbeDue
from replication.roles.outbox import Outbox
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.member_fetches import Fetches
from tests.replication.mutants.member_talk import PROBE_MS, MemberTalk, Seen
from tests.replication.mutants.member_world import CALM_MS, RATE, STORM_MS

RESTART_MS: Final = 5_000
LIVES_A_RUN: Final = 3
_STREAM: Final = 57
_BEHIND_MS: Final = 4_000
_TEXTS: Final = {
    EventKind.START: "starts",
    EventKind.CRASH: "dies",
    EventKind.CLOSE: "leaves",
    EventKind.STALL: "does not poll for {} ms",
    EventKind.FREEZE: "stands still for {} ms",
}


def members_noticed(seed: int) -> str:
    """Return what a member does that it must not, "" if nothing."""
    draws = Draws(seed, _STREAM)
    return next((told for told in (_Life(draws).run() for _ in range(LIVES_A_RUN)) if told), "")


class _Life(MemberTalk):
    """Run one member."""

    def __init__(self, draws: Draws) -> None:
        super().__init__(draws)
        self._planned: dict[int, str] = {}
        """What the numbers mean that are no places in the plan."""
        self._probes_due: set[int] = set()
        """The sessions in which a next probe is planned."""
        self._newest_due: MemberDue | None = None
        """The timer that was planned last; what was planned before in the same process is replaced by it."""
        self._fetches = Fetches()

    def run(self) -> str:
        """Run the storm and the calm."""
        out = Outbox()
        self._subject.begin(out)
        wanted = [(event.at_ms, EventDue(place)) for place, event in enumerate(self.plan.events)]
        if out.woken != wanted:
            return f"it plans {out.woken}"
        self._plan(out)
        self.run_until(STORM_MS)
        self.calm()
        self.run_until(STORM_MS + CALM_MS)
        return self._told or self._settled()

    def _plan(self, out: Outbox) -> None:
        for delay_ms, message in out.woken:
            self.later(delay_ms, -1, message)

    # One step.

    def hand(self, message: Any) -> None:
        """Let the member take a message, and judge what it does."""
        member, out = self._subject, Outbox()
        self._seen = Seen()
        wanted, was_there, was_frozen = self._wanted(message), member.client is not None, self._is_frozen
        next_ms = member.client.next_ms() if member.client is not None and not was_frozen else None
        if next_ms is not None and next_ms < self.now_ms:
            self._told = self._told or f"at {self.now_ms} its timer of {next_ms} has not run"
        self._was_alive = self._is_alive
        member.handle(message, TimeMs(self.now_ms), out)
        told = next(self._judged(message, out, wanted, was_frozen and self._is_frozen, was_there), "")
        self._told = self._told or (f"at {self.now_ms} {told}, by {message}" if told else "")
        self._plan(out)
        for receiver, each in out.sent:
            self.post(each, int(receiver.node), is_out=True)

    def _wanted(self, message: Any) -> list[str]:
        """Return the events of which a message must make the member tell."""
        if not isinstance(message, EventDue):
            return []
        client = self._subject.client
        match self._planned.get(message.place):
            case None:
                event = self.plan.events[message.place]
                is_due = event.kind is EventKind.START or self._is_alive
                return [_TEXTS[event.kind].format(event.for_ms)] if is_due else []
            case "thaw":
                return ["goes on"] if self._is_frozen else []
            case _:
                return ["starts"] if client is not None and client.is_over else []

    def _judged(self, message: Any, out: Outbox, wanted: list[str], was_frozen: bool, was_there: bool) -> Iterator[str]:
        seen = self._seen
        if seen.acted != wanted:
            yield f"it tells of {seen.acted}, and {wanted} happens"
        has_gone_on = "goes on" in wanted
        if {"starts", "dies"} & set(wanted):
            self._begin_anew(is_alive="starts" in wanted)
        if was_frozen and not has_gone_on and not wanted and (out.sent or seen.sent or seen.notes or seen.heard):
            yield f"it stands still and sends {out.sent}, notes {seen.notes}, hears {seen.heard}"
        yield from self._read()
        yield from self._happened(message, out, wanted)
        yield from self._listened(message, was_frozen, was_there, has_gone_on)
        yield from self._spoken(out)
        if not self._is_frozen:
            client = self._subject.client if self._is_alive else None
            yield from self._fetches.judged(message, out, client, self.now_ms, self._went_on_ms)

    def _begin_anew(self, *, is_alive: bool) -> None:
        self._forget()
        self._fetches = Fetches()
        self._is_frozen, self._silent_until_ms = False, 0 if is_alive else 10**9
        self._went_on_ms = self.now_ms

    def _happened(self, message: Any, out: Outbox, wanted: list[str]) -> Iterator[str]:
        """Note what an event of the plan leads to."""
        if isinstance(message, ProbeDue):
            self._probes_due.discard(message.session)
        planned = [each for _, each in out.woken if isinstance(each, MemberDue)]
        if isinstance(message, MemberDue) and message is not self._newest_due and (planned or out.sent):
            yield f"a timer that was replaced plans {planned} and sends {out.sent}"
        if planned or {"goes on", "starts", "dies"} & set(wanted):
            self._newest_due = planned[-1] if planned else None
        for delay_ms, each in out.woken:
            if isinstance(each, ProbeDue):
                if delay_ms != PROBE_MS or each.session in self._probes_due:
                    yield f"it plans a probe in {delay_ms} ms, planned in {self._probes_due}"
                if not self._open and not self._seen.sent:
                    yield "it plans a probe, and nothing is under way"
                self._probes_due.add(each.session)
        timers = [(int(delay_ms), each.place) for delay_ms, each in out.woken if isinstance(each, EventDue)]
        event: Event | None = None
        if wanted and message.place not in self._planned:
            event = self.plan.events[message.place]
        due = [(int(event.for_ms), "thaw")] if event is not None and event.kind is EventKind.FREEZE else []
        due += [(RESTART_MS, "restart") for note in self._seen.notes if isinstance(note, Died)]
        if [delay_ms for delay_ms, _ in timers] != [delay_ms for delay_ms, _ in due]:
            yield f"it plans {timers}, and {due} is due"
        self._planned |= {place: what for (_, place), (_, what) in zip(timers, due, strict=False)}
        if event is not None and event.kind is EventKind.FREEZE:
            self._is_frozen, self._froze_ms = True, self.now_ms
        elif event is not None and event.kind is EventKind.STALL:
            self._silent_until_ms = max(self._silent_until_ms, self.now_ms + event.for_ms)
        elif event is not None and event.kind is EventKind.CLOSE:
            self._silent_until_ms = 10**9
        if self._is_frozen != self._subject.is_frozen and "goes on" not in wanted:
            yield f"it stands still: {self._subject.is_frozen}"

    def _settled(self) -> str:
        """Return what the member lacks at the end."""
        client = self._subject.client
        if (
            client is None
            or not self._is_alive
            or client.subscriptions.owned != (self._given if self._is_consumer else self.share)
        ):
            return f"at last it is alive: {self._is_alive}, its share are {sorted(self.share)}"
        behind = {
            str(each): self._reads.get(each, 0)
            for each in client.subscriptions.owned
            if self.high(0) - self._reads.get(each, 0) > RATE * _BEHIND_MS // 1_000
        }
        return f"at last it has read {behind} of {self.high(0)}" if behind else ""
