"""Plan moves of replicas and leaders, and say what a plan does before it is run.

problem         Define partitions, the brokers that may hold them, and bounds on loads.
exchange        Find the solution of least cost, and the most even loads that can be reached.
least_bytes     Find the solution that copies the fewest bytes among those with the most even counts.
byte_band       Define the band of bytes of each broker, and prove that no placement is more even.
parts           Cut partitions into parts of equal bytes, whose least moves within bands are a flow.
sets_kernel     Round partitions to parts, choose the brokers of whole ones from theirs, and fill gaps, compiled.
staying         Find the largest partitions that can stay where they are, so that small ones move in their place.
large_partitions  Decide the brokers of the largest partitions one by one.
whole_partitions  Place whole partitions near the places of their parts, and exchange them until few bytes are copied.
anneal_kernel   Exchange replicas at random, and for the worse less and less often, compiled.
annealing       Search for a placement that copies fewer bytes by random exchanges, from one that is found.
least_band      Find a placement within a band of bytes that copies few bytes, and prices that bound any other.
reassignment    Hold target replicas for some partitions of a view.
completion      Decide when Kafka completes each partition of a reassignment, and what the cluster is then.
moves           List the partitions that copy bytes, as columns of brokers, and bound how fast they can go.
peak            Run batches through the disks of the brokers: what each holds at its fullest.
batches_kernel  Split moves into batches that run one after the other, compiled.
batch_bound     Bound the time of batches that run one after the other from below.
packing         Pack moves into batches of different lengths, large moves together.
rolling_kernel  Run moves as soon as their brokers have free slots, compiled.
rolling         Run the moves of a reassignment without batches, and say how long that takes.
schedule        Cut a reassignment into batches, and say how far from the shortest time they are.
goal            Define what a plan should reach.
refusals        Refuse a goal that a cluster cannot reach, with the rule, the numbers, and what would do.
certificate     Prove from the input and a price for each broker that no plan moves less.
check_input     Read what a plan starts from, and what the rules allow, for the check alone.
plan_faults     Say which rules and bounds a plan breaks.
check           Check a plan against its input, without any solver.
planning        Turn a view and a goal into problems, one for replicas and one for leaders.
case_bound      Bound the bytes that a plan copies by cases: whether a broker holds a large partition or not.
case_search     Search for cases that bound the bytes of a plan: which questions to ask, and at which prices.
topic_bands     Find a placement within bands of bytes in which each topic is spread evenly as well.
banding         Solve a goal that makes bytes even, and refuse what cannot be, or what was not found.
plan            Make the plan that moves least.
input_table     Keep the input of a plan as a table, and make the view of it again.
plan_tables     Make the tables of a plan: what changes, and what every broker holds.
notes           Say what the reader of a plan must know before it runs.
throttle        Say how long moves take at a throttle, beside what clients produce meanwhile.
impact          Say what a plan does to a cluster before it is run, batch by batch and in the end.
findings        Put into words what would hold a plan up, what it breaks, and what Kafka would refuse.
impact_tables   Turn an impact into Arrow tables: a row a batch, a broker, a moved partition, and a measure.
"""
