"""Tests of placement.planning: plans, their completion, impact and schedules."""
