"""Simulate consumers before 0.9, which coordinated themselves through ZooKeeper: herd effect and split brain."""

from __future__ import annotations

from broker.group.zookeeper.herd import Herd, HerdEpisode, HerdOptions, HerdReport, herd_episodes

__all__ = ("Herd", "HerdEpisode", "HerdOptions", "HerdReport", "herd_episodes")
