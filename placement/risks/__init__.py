"""Compute how likely outages and losses are: by random draws, by simulated years, and by closed forms.

- rates: Hold how often brokers, racks and power fail, and for how long: defaults with their sources.
- draws: Draw which brokers are down, stratified by their number, so that rare outages are seen.
- availability: Compute the chance that a partition is leaderless, under min-ISR or lost, for each kind of event.
- years_kernel: Simulate years of one cluster, loss by loss, compiled.
- durability: Compute how often a cluster loses data: copysets, scatter widths, simulated years, closed forms.
"""
