"""Place replicas as Kafka does; each placer has its compiled kernel beside it, and a registry names them."""
