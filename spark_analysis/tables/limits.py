"""Define the limits that both the jobs, which write tables, and the report, which reads them, apply."""

from __future__ import annotations

from typing import Final

DETAILED_CLUSTERS_MAX: Final = 200
"""Clusters that the report shows in full, by rank: what keeps the page of any fleet within some megabytes. The jobs
count pairs of brokers for these."""

VIOLATIONS_MAX: Final = 100
"""Violations of each kind that are listed of one cluster."""
