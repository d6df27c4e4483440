"""Consumers of before 0.9, which coordinated themselves through ZooKeeper: the herd and the split brain."""

from __future__ import annotations

from broker.group.zookeeper.herd import Herd, HerdOptions, HerdReport

__all__ = ("Herd", "HerdOptions", "HerdReport")
