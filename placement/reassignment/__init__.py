"""Plan moves of replicas and leaders, and say what a plan does before it is run.

problem         Define partitions, the brokers that may hold them, and bounds on loads.
exchange        Find the solution of least cost, and the most even loads that can be reached.
reassignment    Hold target replicas for some partitions of a view.
completion      Decide when Kafka completes each partition of a reassignment, and what the cluster is then.
"""
