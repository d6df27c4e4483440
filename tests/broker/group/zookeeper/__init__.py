"""Consumers that coordinated themselves through ZooKeeper."""
