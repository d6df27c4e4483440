"""Put small bugs into the replication code, one at a time, and see who notices.

- operators: List the places of a module at which a small bug can be put in, and put one in.
- tree: Keep a copy of the source tree in which one file at a time is changed.
- until_noticed: Make checks one after the other for some CPU seconds, until one of them notices something.
- campaign: Run simulations of every shape for some CPU seconds, and say what the first broken one broke.
- prompt: Run a cluster with one fault at most, and see that nobody waits for a timer without need.
- lone_logs: Drive a log at random, and compare it with a plain list.
- lone_appends: Send a leader's log batches of every kind, and compare with a plain list.
- lone_recovery: Harm a log's files as crashes do, open it again, and compare with what was written.
- lone_truncations: Let leaders and followers part at random, and compare truncation with what the records say.
- lone_leaders: Draw what a leader knows of its followers, and compare every rule with a list of facts.
- lone_controllers: Draw partitions, brokers and requests, and compare a controller's decisions with facts.
- partition_changes: Compare what follows from a change of a partition, and what is refused, with facts.
- lone_brokers: Tell one broker what others may tell it, and hold every answer to plain facts.
- broker_world, broker_facts, broker_clients, broker_news: Set it up, hold what it owes, ask it, and answer it.
- lone_classic: Send a classic group's coordinator requests, and compare with `reference_classic`.
- classic_members: Draw the requests of a classic group's members.
- lone_consumers: Send a consumer group's coordinator heartbeats, and compare with `reference_consumer`.
- lone_offsets: Commit offsets, and write their records byte by byte, apart from the code that reads them.
- consumer_bytes: Write the records of a consumer group byte by byte, and have them read.
- lone_clients: Let one consumer speak with a coordinator that errs, and see that it recovers.
- lone_replies: Let one answer to a consumer be an error, or its application be late, and see what it does.
- lone_shards: Let two brokers coordinate groups in turn, and compare with the logs of `__consumer_offsets`.
- kafka_answers: Replay random histories of a controller and of a log that Kafka's own classes have answered.
- drawing: Draw what these runs are made of, from a seed.
- lone_groups: Run a group without a cluster.
- lone_herds: Let consumers coordinate themselves through ZooKeeper, and compare its reports with notes.
- herd_notes: Note the requests of such consumers as they reach ZooKeeper.
- view_checks: Judge what a run under way tells of its partitions by an oracle.
- histories: Run the explorer's models for some CPU seconds, and say what the first unexpected outcome was.
- nearest: Order the test files by how near they are to a module.
- judges: Ask the campaign, the explorer and the tests, each in a process of its own, whether a mutant is noticed.
- equivalents: List mutants that change nothing that could be observed, each with the reason.
- equivalent: Mutants that change nothing that could be observed, listed by the room that they are in.
- table: Count by module who noticed, and draw the table.
- code_swap: Change functions of loaded modules in place, by giving them other code.
- forks: Run a call in a fork of this process, and tell what came of it.
- reach: Record which statements each check reaches, and choose the checks that can notice a mutant.
- forked: Take a fast first look at drawn mutants, in forks of a process that has loaded everything.

`python -m tests.replication.mutants --count N --seed S` draws N mutants and prints the table and the survivors.
`python -m tests.replication.mutants.forked`, with the same `--out`, takes a fast first look before.
"""
