"""A consumer group's life: clients of each protocol as machines without I/O, and the world that plays them.

`ClassicClient` and `ConsumerClient` take answers and time, and give requests and notes. `ClientSpec` says who they are.
"""

from placement.group_life.assigning import ClientAssignor, OnServer
from placement.group_life.classic_client import ClassicClient
from placement.group_life.client import Client
from placement.group_life.consumer_client import ConsumerClient
from placement.group_life.messages import Disconnected, Output, Request, Response, Send, TopicsTold
from placement.group_life.options import ClientOptions, ClientSpec
from placement.group_life.reading import Feed

__all__ = [
    "ClassicClient",
    "Client",
    "ClientAssignor",
    "ClientOptions",
    "ClientSpec",
    "ConsumerClient",
    "Disconnected",
    "Feed",
    "OnServer",
    "Output",
    "Request",
    "Response",
    "Send",
    "TopicsTold",
]
