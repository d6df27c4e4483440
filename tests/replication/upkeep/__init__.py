"""Tests of retention, compaction and deletion in replicated logs."""
