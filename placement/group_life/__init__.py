"""A consumer group's life: clients of each protocol as machines without I/O, and the world that plays them.

`ClassicClient` and `ConsumerClient` take answers and time, and give requests and notes. `ClientSpec` says who they are.
`live(story, mode, seed)` plays a `Story`, named (`STORIES`) or drawn (`seeded_story`), and says what came of it.
"""

from placement.group_life.assigning import ClientAssignor, OnServer
from placement.group_life.classic_client import ClassicClient
from placement.group_life.client import Client
from placement.group_life.consumer_client import ConsumerClient
from placement.group_life.life import Life, live
from placement.group_life.messages import Disconnected, Output, Request, Response, Send, TopicsTold
from placement.group_life.options import ClientOptions, ClientSpec
from placement.group_life.plan import Shape, seeded_story
from placement.group_life.reading import Feed
from placement.group_life.stories import STORIES
from placement.group_life.story import Event, EventKind, Mode, Person, Story

__all__ = [
    "STORIES",
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
    "Life",
    "Mode",
    "OnServer",
    "Output",
    "Person",
    "Request",
    "Response",
    "Send",
    "Shape",
    "Story",
    "TopicsTold",
    "live",
    "seeded_story",
]
