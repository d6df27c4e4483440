"""Place replicas as Kafka does; each placer has its compiled kernel in a module of its own, found by a registry."""
