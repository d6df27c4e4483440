"""The uniform assignor of Kafka's group coordinator."""
