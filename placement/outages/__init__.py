"""Show what losing brokers, racks or any set of brokers does, and in which batches brokers may restart.

- succession: Order the replicas of each partition by who leads next: the column form of Kafka's leader election.
- returning: Find which lost brokers must return before a partition is led again without losing a committed record.
- elections: Find the action that restores a leader or the preferred leader: a broker's return or an election.
- arrow: Make Arrow columns of the outages' arrays; pyarrow is imported when the first column is made.
- lost: Show what a cluster looks like once any set of its brokers is lost: the readable form of every outage.
- sweep_kernel: Count a state of partitions, and the leaders taken over, for every set that is lost, compiled.
- look_ahead: Look ahead at every likely outage: each broker, each pair, each rack, and each rack with one more broker.
- copysets: Count the copysets and the scatter width of a placement, beside the fewest that this width allows.
- fatal: List the fatal sets of brokers, and count exactly how many sets of one, two and three brokers are fatal.
- restart_stuck: Find the partitions that no order of restarts keeps at min.insync.replicas, or that forbid restarts.
- restart_budget: Say which brokers may restart together: the constraints that min.insync.replicas puts on a batch.
- restart_check: Check a schedule of restarts and its lower bound, from the constraints alone.
- restart_kernel: Put brokers into batches: in a given order, and by repairing a schedule of too few batches, compiled.
- restarts: Schedule restarts in as few batches as possible so that no partition falls under min.insync.replicas.
- restart_savings: Find the few partitions that cost extra batches: without them a schedule of restarts has fewer.
"""
