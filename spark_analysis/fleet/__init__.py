"""Read a fleet's recipe, and generate, place and count each of its simulated clusters.

- recipe: Define a fleet as values: shapes drawn by weight, and the brokers, racks and topics of their clusters.
- reading: Read a recipe's TOML: accept known keys with values in their bounds, or name the key that is wrong.
- generate: Make cluster k of a fleet from the fleet's seed and k alone; this decides what the cluster is.
- place: Place every topic of a simulated cluster, created in order and then grown in order, on one generator.
- views: Turn a simulated cluster and its replicas into a `ClusterView`, as a dump of it would be read.
- count: Count replicas, leaders and bytes of a simulated cluster, and describe many counted clusters as rows.
"""

__all__: tuple[str, ...] = ()
