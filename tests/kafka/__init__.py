"""Kafka's own released classes, run as a live oracle and as a baseline."""
