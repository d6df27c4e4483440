"""Kafka's replica placers, each with its compiled kernel beside it, and the registry of placers."""
