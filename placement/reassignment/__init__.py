"""Plan moves of replicas and leaders, and say what a plan does before it is run.

reassignment    Hold target replicas for some partitions of a view.
completion      Decide when Kafka completes each partition of a reassignment, and what the cluster is then.
"""
