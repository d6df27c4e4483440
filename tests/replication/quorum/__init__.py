"""Tests of the quorum of controllers."""
