"""Compute how likely outages and losses are: by random draws, by simulated years, and by closed forms.

- rates: Hold how often brokers, racks and power fail, and for how long: defaults with their sources.
- streams: Draw random words, chances and waiting times from SplitMix64, inside compiled loops.
- draws: Choose which brokers are down in each draw, with weights that make rare outages count as they should.
- draws_kernel: Set the bits of the brokers that are down or lost, 64 draws a machine word, compiled.
- states_kernel: Find the draws in which partitions are leaderless, under min-ISR or lost, 64 draws at once, compiled.
- availability: Compute the chance that a partition is leaderless, under min-ISR or lost, for each kind of event.
- markov: Compute how often independent losses of brokers lose a copyset: closed forms that need no draw.
- years_kernel: Simulate years of one cluster, loss by loss, compiled.
- durability: Compute how often a cluster loses data: copysets, scatter widths, simulated years, closed forms.
"""
