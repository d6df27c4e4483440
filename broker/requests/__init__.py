"""Model the request path of one broker: sockets, threads, queues, and the purgatory.

- reactor: Model a broker's request path, from socket to log and back, as discrete events (Reactor pattern).
- purgatory: Hold requests in the purgatory until their condition is met or their time expires; usable by itself.
- options: Configure the request path and the load on it.
- measures: Measure a run of the request path, in the terms of Kafka's metrics.
- cli: Run `brokerside requests`, which measures a broker's threads and queues under load.
"""
