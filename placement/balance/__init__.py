"""Measure how even and how safe a placement is: loads, measures, constraints, audits, changes.

- loads: Count which brokers, racks and topics there are, and how much of each quantity stands on each.
- reachable_kernel: Split units of alike brokers into blocks of equal reachable load, compiled.
- reachable: Compute the most even load of brokers that can be reached without breaking a rule of Kafka.
- reachable_many: Find the optima of many small clusters at once, as reachable.py finds that of one.
- shares: Gather what brokers, racks and topics of many clusters hold, and the best spread of each.
- measures: Measure how evenly whole units are spread over groups, beside the most even spread possible.
- definitions: Define each measure and state in the words that reports print: formula, unit, range, optimum and source.
- rack_limits: Name racks whose few brokers must hold far more than the mean, and the effect of one more broker there.
- constraints: Decide which partitions break a named constraint of a placement.
- audit: Find the partitions and racks of a cluster that need attention.
- topic_kernel: Count what brokers hold of each topic and compare it with the topic's best spread, compiled.
- topic_spread: Measure the spread of each topic over live brokers, and the best reachable spread.
- out_of_sync: Name the brokers missing from ISRs, and a few brokers that account for the under-replicated partitions.
- changes: Compare two moments of one cluster and list what happened to each partition.
- comparison: Compare two dumps of one cluster: topics, brokers, settings, and who gained or lost what.
"""
