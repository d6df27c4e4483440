"""Plan moves of replicas and leaders, and show what a plan does before it is run.

problem          Define partitions, the brokers that may hold them, and bounds on loads.
reassignment     Hold target replicas for some partitions of a view.
goal             Define what a plan should reach.
question         Ask what may be placed where, and compute the least that each partition can cost at given prices.
given            Read what a plan starts from, and who may receive (alive, not cordoned), for the planner and the check.
refusals         Refuse a goal that a cluster cannot reach, with the rule, the numbers, and what would do.
rules            Turn a view and a goal into problems, one for replicas and one for leaders.
exchange_graph   Define the arrays of an exchange graph and of a search over it.
exchange_kernel  Exchange replicas between brokers along cheapest paths, compiled.
settle_kernel    Send units of an exchange graph until every load lies within its bounds, compiled.
exchange         Find the solution of least cost, and the most even loads that can be reached.
certificate      Prove from the input and a price for each broker that no plan moves less.
byte_bounds      Define the bytes that each broker may end with, and check that no placement is more even.
check            Check a plan against its input, without any solver.
bytes_kernel     Move whole partitions until the bytes of brokers lie within bounds, the largest first, compiled.
byte_search      Improve a placement by bytes by the best moves and exchanges of replicas.
even_bytes       Make the bytes of every broker even within a tolerance, with few bytes copied in few moves.
plan             Make the plan that moves least.
completion       Decide when Kafka completes each partition of a reassignment, and what the cluster is then.
moves            List the partitions that copy bytes, as columns of brokers, and bound how fast they can go.
batches_kernel   Split moves into batches that run one after the other, compiled.
batch_bound      Bound the time of batches that run one after the other from below.
schedule         Cut a reassignment into batches, and compare their time with the shortest.
peak             Run batches through the disks of the brokers: the peak bytes of each.
directories      Count what a plan copies between the log directories of each broker, and name unusable ones.
throttle         Compute how long moves take at a throttle, beside what clients produce meanwhile.
impact           Compute what a plan does to a cluster, batch by batch and in the end.
impact_tables    Turn an impact into Arrow tables: a row a batch, a broker, a moved partition, and a measure.
findings         Put into words what would hold a plan up, what it breaks, and what Kafka would refuse.
notes            List what the reader of a plan must know before it runs.
input_table      Keep the input of a plan as a table, and make the view of it again.
plan_tables      Make the tables of a plan: what changes, and what every broker holds.
"""
