"""Tests of the older mode, with ZooKeeper."""
