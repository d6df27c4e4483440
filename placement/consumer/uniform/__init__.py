"""Implement the uniform assignor of Kafka's group coordinator."""
