"""Tests of the tree of ZooKeeper nodes."""
