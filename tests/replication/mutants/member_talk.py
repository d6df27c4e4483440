"""Compare what a group's member tells its observer, sends and hears with what was delivered to it.

What it decides: which answers a process must have heard, which requests are its own, and when each was to be probed.

Constraints: requests of a former process are over. What a frozen process was brought it hears as it goes on, in order;
after a long pause it may have given up some of that.

Source: ours, as `replication.groups.member`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from broker.error_codes import ErrorCode
from broker.group.messages import OffsetCommitRequest
from broker.units import TimeMs
from replication.groups.client.messages import Committed, Read, Send
from replication.groups.connection_messages import GroupRequest, GroupResponse, ProbeResult, RequestProbe
from replication.groups.member import Member
from replication.roles.messages import NodeId
from replication.roles.outbox import Outbox
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.member_world import LAYOUT, OPTIONS, SHORT_MS, MemberWorld

PROBE_MS: Final = 1_000
_NODE: Final = NodeId(7)


@attrs.define
class _Asked:
    """Hold a request of the present process that is not answered yet."""

    sent_ms: int
    send: Send
    is_probed: bool = False

    def is_given_up(self, now_ms: int) -> bool:
        """Return whether the consumer has given up the request by itself."""
        return now_ms - self.sent_ms >= self.send.timeout_ms


@attrs.define
class Seen:
    """Hold what a member's observer was told in one step, in order."""

    acted: list[str] = attrs.field(factory=list)
    sent: list[tuple[int, Any]] = attrs.field(factory=list)
    heard: list[GroupResponse] = attrs.field(factory=list)
    notes: list[Any] = attrs.field(factory=list)


class MemberTalk(MemberWorld):
    """Observe one member; `_seen` is what it told of the present step."""

    def __init__(self, draws: Draws) -> None:
        super().__init__(draws)
        self._subject = Member(_NODE, self.plan, (OPTIONS, LAYOUT), self.entropy, self)
        self._seen = Seen()
        self._open: dict[int, _Asked] = {}
        self._inbox: list[GroupResponse] = []
        self._is_frozen, self._froze_ms, self._went_on_ms = False, 0, 0
        self._silent_until_ms = 0
        self._was_alive = False
        """Whether the process ran before this step."""
        self._session = 0
        self._reads: dict[Any, int] = {}

    @property
    def _is_alive(self) -> bool:
        client = self._subject.client
        return client is not None and not client.is_over

    def _forget(self) -> None:
        """Let all be over that a former process has asked and read."""
        self._open.clear()
        self._inbox.clear()
        self._reads.clear()

    # What the member tells its observer.

    def acted(self, member: Member, text: str, now_ms: TimeMs) -> None:
        """Take an event."""
        self._witness(member, now_ms)
        self._seen.acted.append(text)

    def sent(self, member: Member, send: Send, now_ms: TimeMs) -> None:
        """Take a request."""
        self._witness(member, now_ms)
        self._seen.sent.append((int(send.ticket), send))

    def heard(self, member: Member, answer: GroupResponse, now_ms: TimeMs) -> None:
        """Take a response."""
        self._witness(member, now_ms)
        self._seen.heard.append(answer)

    def noted(self, member: Member, note: Any, now_ms: TimeMs) -> None:
        """Take a note."""
        self._witness(member, now_ms)
        self._seen.notes.append(note)

    def _witness(self, member: Member, now_ms: TimeMs) -> None:
        if member is not self._subject or now_ms != self.now_ms:
            self._told = self._told or f"{member} tells at {self.now_ms} of {now_ms}"

    # What it says and hears.

    def _listened(self, message: Any, was_frozen: bool, was_there: bool, has_gone_on: bool) -> Iterator[str]:
        """Yield an answer that is taken and must not be, or the reverse; note requests that are lost."""
        heard, is_short = list(self._seen.heard), self.now_ms - self._froze_ms <= SHORT_MS
        if has_gone_on:
            due, self._inbox = self._inbox, []
            self._is_frozen, self._went_on_ms = False, self.now_ms
        elif was_frozen:
            self._inbox += [message] if isinstance(message, GroupResponse) else []
            return
        else:
            due = [message] if isinstance(message, GroupResponse) and was_there else []
            is_short = True
        wanted = [each for each in _once(due) if each.session == self._session and int(each.ticket) in self._open]
        if [each for each in wanted if each in heard] != heard or (is_short and self._is_alive and heard != wanted):
            yield f"it hears {heard}, and {wanted} has come"
        for each in heard:
            self._open.pop(int(each.ticket), None)
        if isinstance(message, ProbeResult) and message.session == self._session and was_there:
            lost = [self._open.pop(int(each)) for each in message.tickets if int(each) in self._open]
            yield from self._lost(lost) if self._was_alive else ()

    def _lost(self, lost: list[_Asked]) -> Iterator[str]:
        """Yield a commit that is lost and not noted so."""
        noted = [each for each in self._seen.notes if isinstance(each, Committed)]
        wanted = [
            Committed(commit.partition, commit.offset, ErrorCode.REQUEST_TIMED_OUT)
            for each in lost
            if isinstance(each.send.request, OffsetCommitRequest) and not each.is_given_up(self.now_ms)
            for commit in each.send.request.commits
        ]
        if noted[: len(wanted)] != wanted:
            yield f"{wanted} are lost, and {noted} are noted"

    def _spoken(self, out: Outbox) -> Iterator[str]:
        """Yield a request that is sent otherwise than it was told, and one that is not probed in time."""
        asked = [each for each in out.sent if isinstance(each[1], GroupRequest)]
        told = [(ticket, send.request, send.broker) for ticket, send in self._seen.sent]
        said = [
            (int(each.ticket), each.request, receiver.node if send.broker is not None else None)
            for (receiver, each), (_, send) in zip(asked, self._seen.sent, strict=False)
        ]
        if told != said or len(told) != len(asked):
            yield f"{told} are told of, and {asked} sent"
        if any(not 0 <= receiver.node < OPTIONS.brokers for receiver, _ in out.sent):
            yield f"it sends {out.sent}"
        sessions = {each.session for _, each in out.sent if isinstance(each, GroupRequest | RequestProbe)}
        if sessions:
            is_first = not self._open and any(ticket == 1 for ticket, _, _ in told)
            if len(sessions) > 1 or min(sessions) < self._session or (min(sessions) > self._session) != is_first:
                yield f"in session {self._session} it speaks in {sessions}"
            self._session = min(sessions)
        self._open |= {ticket: _Asked(self.now_ms, send) for ticket, send in self._seen.sent}
        probed = [int(each) for _, probe in out.sent if isinstance(probe, RequestProbe) for each in probe.tickets]
        for ticket in probed:
            if ticket in self._open:
                self._open[ticket].is_probed = True
        since_ms = self._went_on_ms
        late = [
            each
            for each in self._open.values()
            if self.now_ms - max(each.sent_ms, since_ms) > 2 * PROBE_MS and not each.is_given_up(self.now_ms)
        ]
        if self._is_alive and not self._is_frozen and any(not each.is_probed for each in late):
            yield f"it has not probed {late}"

    def _read(self) -> Iterator[str]:
        """Yield records that are read too early, or not in their order."""
        for each in self._seen.notes:
            if isinstance(each, Read):
                number = LAYOUT.number_of(each.partition)
                if each.end_offset > self.high(number):
                    yield f"it reads {each}, and {self.high(number)} records are there"
                if self.now_ms < self._silent_until_ms:
                    yield f"it reads {each}, and polls again at {self._silent_until_ms}"
                self._reads[each.partition] = int(each.end_offset)


def _once(answers: list[GroupResponse]) -> list[GroupResponse]:
    """Return the first answer to each request."""
    return list({(each.session, each.ticket): each for each in reversed(answers)}.values())[::-1]
