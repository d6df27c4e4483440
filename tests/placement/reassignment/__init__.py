"""Tests of placement.reassignment: plans, their completion, impact and schedules."""
