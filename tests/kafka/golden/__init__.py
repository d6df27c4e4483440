"""Golden vectors, printed by the classes of a released Kafka: `python -m tests.kafka.golden OUT`."""
