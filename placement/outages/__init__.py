"""Show what losing brokers, racks or any set of brokers does, and in which batches brokers may restart.

- succession: Order the replicas of each partition by who leads next: the column form of Kafka's leader election.
- returning: Find which lost brokers must return before a partition is led again without losing a committed record.
- arrow: Make Arrow columns of the outages' arrays; pyarrow is imported when the first column is made.
- lost: Show what a cluster looks like once any set of its brokers is lost: the readable form of every outage.
- sweep_kernel: Count a state of partitions for every lost broker, pair, rack, and rack with one more, compiled.
- pile_up_kernel: Count the leaders that brokers take over in each of these outages, compiled.
- look_ahead: Look ahead at every likely outage: each broker, each pair, each rack, and each rack with one more broker.
- copysets: Count the copysets and the scatter width of a placement, beside the fewest that this width allows.
- fatal: List the fatal sets of brokers, and count exactly how many sets of one, two and three brokers are fatal.
"""
