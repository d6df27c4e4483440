"""Ask a live cluster what it is, read-only, and keep the answers as one dump.

- properties: Translate the properties file of Kafka's tools to the options of the client library.
- client: Send requests that change nothing through confluent-kafka's AdminClient, and say why one failed.
- replicas: Read replica sizes and eligible leader replicas through kafka-python.
- gather: Ask a cluster for everything that a snapshot holds.
- cluster: Name a live cluster as the command line does, and take its snapshot.
"""

__all__: tuple[str, ...] = ()
