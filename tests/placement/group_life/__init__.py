"""Tests of placement.group_life: a consumer group's life under each protocol."""
