"""Read a fleet's recipe, and generate, place and count each of its simulated clusters.

- recipe: Define a fleet as values: shapes drawn by weight, and the brokers, racks and topics of their clusters.
- reading: Read a recipe's TOML: accept known keys with values in their bounds, or name the key that is wrong.
- generate: Make cluster k of a fleet from the fleet's seed and k alone; this decides what the cluster is.
- place: Place every topic of a simulated cluster, created in order and then grown in order, on one generator.
- views: Show a placed cluster of a fleet as a view, as if it had been dumped.
- count: Count what brokers, racks and topics of a placed cluster hold, and what could be held at best.
- shares: Join what the brokers and racks of many clusters of a fleet hold, each beside its best spread.
- describe: Turn counted clusters of a fleet into rows of the tables, many clusters at once.
- sizes: Draw sizes from a distribution, the same bytes on every machine.
- loops: Compile the loops over every topic and replica of a simulated cluster.
"""

__all__: tuple[str, ...] = ()
