"""A consumer group's life: clients of each protocol as machines without I/O, and the world that plays them.

`ClassicClient` and `ConsumerClient` take answers and time, and give requests and notes. `ClientSpec` says who they are.
`live(scenario, mode, seed)` plays a `GroupRunScenario`, named (`SCENARIOS`) or drawn (`seeded_scenario`), and says
what came of it.
"""

from replication.groups.alone.life import Life, live
from replication.groups.alone.plan import Shape, seeded_scenario
from replication.groups.alone.scenario import Event, EventKind, GroupRunScenario, Mode, Person
from replication.groups.alone.scenarios import SCENARIOS
from replication.groups.client.assigning import ClientAssignor, OnServer
from replication.groups.client.classic_client import ClassicClient
from replication.groups.client.client import Client
from replication.groups.client.consumer_client import ConsumerClient
from replication.groups.client.messages import Disconnected, Output, Request, Response, Send, TopicsTold
from replication.groups.client.options import ClientOptions, ClientSpec
from replication.groups.client.reading import Feed

__all__ = [
    "SCENARIOS",
    "ClassicClient",
    "Client",
    "ClientAssignor",
    "ClientOptions",
    "ClientSpec",
    "ConsumerClient",
    "Disconnected",
    "Event",
    "EventKind",
    "Feed",
    "GroupRunScenario",
    "Life",
    "Mode",
    "OnServer",
    "Output",
    "Person",
    "Request",
    "Response",
    "Send",
    "Shape",
    "TopicsTold",
    "live",
    "seeded_scenario",
]
