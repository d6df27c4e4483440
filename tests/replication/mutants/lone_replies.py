"""Let one answer to a consumer be an error, or its application be late, and see that it does what Kafka's does.

What it decides: the protocol, the trouble and its time, from a seed; before and after it all is answered at once.

Constraints: `cures` says what follows each error, `talk_checks` what holds of every run, `lone_changes` and
`lone_troubles` the rest.

Source: Kafka's consumers, as `cures`; heartbeat.interval.ms 3 s, of a consumer group 5 s; auto.commit.interval.ms 5 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker.error_codes import ErrorCode
from broker.group.classic import (
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupRequest,
)
from broker.group.messages import FindCoordinatorRequest, OffsetFetchRequest
from broker.units import TimeMs
from replication.groups.client.protocols import GroupProtocol, takes
from tests.replication.mutants.client_talk import Talk, erring, settled
from tests.replication.mutants.cures import CLASSIC, CONSUMER, cured
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.lone_changes import change, fence, waver
from tests.replication.mutants.lone_crossings import refuse_while_joining, reset_while_syncing
from tests.replication.mutants.lone_troubles import close, garble, remember, silence, stall, watch
from tests.replication.mutants.one_member import EVERY
from tests.replication.mutants.talk_checks import always

TALK_COUNT: Final = 30
_STREAM: Final = 42
_REST_MS: Final = 9_000


def replies_noticed(seed: int) -> str:
    """Return what a consumer does that Kafka's does not, "" if nothing."""
    draws = Draws(seed, _STREAM)
    told = _takes()
    for _ in range(TALK_COUNT):
        protocol = draws.one(tuple(GroupProtocol))
        trouble = draws.one(_TROUBLES)
        told = told or next(trouble(draws, protocol), "")
    return told


def _takes() -> str:
    """Return which protocol takes another assignor than it says."""
    own = {
        "cooperative-sticky": "cooperative",
        "uniform": "consumer",
        "server-range": "consumer",
        "random": "eager consumer",
    }
    for name in ("range", "roundrobin", "sticky", *own):
        found = {each.value for each in GroupProtocol if takes(each, name)}
        if found != set(own.get(name, "eager").split()):
            return f"{name} is taken by {found}"
    return ""


def _err(draws: Draws, protocol: GroupProtocol) -> Iterator[str]:
    """Answer one request by an error."""
    cure = draws.one(CONSUMER if protocol is GroupProtocol.CONSUMER else CLASSIC)
    error = draws.one(cure.errors)
    is_early = cure.asked in (FindCoordinatorRequest, OffsetFetchRequest)
    talk = Talk(draws, protocol) if is_early else settled(draws, protocol)
    talk.share = talk.share or frozenset(EVERY[:1])
    if cure.asked in (JoinGroupRequest, SyncGroupRequest):
        talk.replies[HeartbeatRequest] = erring(ErrorCode.REBALANCE_IN_PROGRESS)
    if is_early:
        talk.do(talk.client.start(TimeMs(0)))
    talk.replies[cure.asked] = erring(error)
    for _ in range(1_500):
        if cure.asked not in talk.replies or talk.client.is_over:
            break
        owned, member_id = talk.client.subscriptions.owned, talk.client.member_id
        talk.run_until(talk.now_ms + 5)
    talk.run_until(talk.trouble_ms + _REST_MS)
    for told in (*cured(talk, cure, error, owned, member_id), *always(talk)):
        yield f"{protocol.value}: after {cure.asked.__name__} is answered {error} {told}"


_TROUBLES: Final = (
    *[_err] * 5,
    stall,
    change,
    watch,
    silence,
    remember,
    garble,
    close,
    fence,
    waver,
    refuse_while_joining,
    reset_while_syncing,
)
