"""Read and write the texts and JSON of Kafka's own tools and their peers, one module per format.

- read: Read any known dump into a ParsedDump; this decides by the content which format a dump has.
- parsed: Hold the result of reading one input: clusters, rejects, and row counts that must add up.
- describe: Read `kafka-topics --describe` text of any length into one ClusterView, in one pass.
- describe_block: Read the common lines of a block of `kafka-topics --describe` with one regular expression.
- describe_line: Parse one line of `kafka-topics --describe` with every check.
- reassign: Read and write the JSON of kafka-reassign-partitions.
- plans: Read a reassignment plan over a view: kafka-reassign-partitions JSON, topicmappr's maps, or proposals.
- certificates: Write and read the certificate of a plan, and the digest of its input.
- plan_files: Write a plan as the files and commands that Kafka's own tools take.
- kcat: Read `kcat -L` (formerly kafkacat): a cluster's metadata, as text or with -J as one JSON object.
- one_topic: Read what other tools than Kafka's print about one topic: ZooKeeper's znode, MSK's answer, rpk's table.
- cruise_control: Read responses of Cruise Control's REST API, recognised by their content.
- cruise_control_cluster: Read `/kafka_cluster_state`: counts per broker, and lists of problem partitions.
- cruise_control_load: Read Cruise Control's `/load`: total replicas, leaders and megabytes of each broker.
- sizes: Read the sizes of replicas from a separate file, because no dump of a cluster's placement contains them.
- snapshot: Read the JSON of `brokerside snapshot`: what a live cluster says of itself at one moment.
- printed: Recognise output of Kafka's tools without replica placements, and suggest the command to run instead.
- group_tables: Read every table that `kafka-consumer-groups --describe` prints: members, offsets, and states of groups.
- group_text: Read the cells of the tables that kafka-consumer-groups --describe prints, and the members in them.
- snapshot_groups: Read groups, of what kafka-consumer-groups printed or of a snapshot, into the same tables.
- member_zones: Read the zones of consumers from a separate file, because no tool prints `client.rack`.
- racks: Read the racks of brokers from a separate file, because most dumps contain none.
- capacity: Read the capacities of brokers from a separate file: disk bytes, network bytes a second, producers' rates.
- csv_line: Split one line of CSV into its fields.
- documents: Find JSON documents in a text, bound their size, parse them, and look values up.
- entries: Turn the entries of JSON formats into partition rows, with the checks that all of them share.
- rows: Gather partitions in columns while a dump is read, and close them into one PartitionTable.
- pasted: Undo what terminals, log collectors, pagers and chats do to what a tool printed.
- text: Split bytes of any origin into blocks of whole UTF-8 lines.
"""

from __future__ import annotations

from placement.formats.capacity import Capacities, Capacity, read_capacities
from placement.formats.parsed import ParsedDump, Reject
from placement.formats.plans import ParsedPlan, read_plan
from placement.formats.racks import Racks, read_racks
from placement.formats.read import FORMATS, read_dump
from placement.formats.reassign import write_reassignment
from placement.formats.sizes import SIZE_FORMATS, Sizes, read_sizes

__all__ = (
    "FORMATS",
    "SIZE_FORMATS",
    "Capacities",
    "Capacity",
    "ParsedDump",
    "ParsedPlan",
    "Racks",
    "Reject",
    "Sizes",
    "read_capacities",
    "read_dump",
    "read_plan",
    "read_racks",
    "read_sizes",
    "write_reassignment",
)
