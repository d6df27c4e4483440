"""Simulate consumers before 0.9, which coordinated themselves through ZooKeeper: herd effect and split brain."""

from __future__ import annotations

from broker.group.zookeeper.episodes import HerdEpisode, herd_episodes
from broker.group.zookeeper.herd import Herd, HerdOptions, HerdReport

__all__ = ("Herd", "HerdEpisode", "HerdOptions", "HerdReport", "herd_episodes")
