"""Define and read the records of Kafka's internal topics other than the metadata log.

- messages: Read Kafka's messages of all versions, flexible or not, with the errors of Kafka's generated classes.
- builders: Build the schemas of records of internal topics from the parts that many of them share.
- consumer_groups: Define the records of classic and consumer groups in `__consumer_offsets`.
- other_groups: Define the records of share and streams groups in `__consumer_offsets`.
- by_release: Tell which fields of the records of internal topics a release does not know yet.
- consumer_protocol: Define the subscription and assignment of members of classic consumer groups.
- state_topics: Define the records of `__transaction_state`, `__share_group_state` and `__remote_log_metadata`.
"""

from __future__ import annotations

__all__: tuple[str, ...] = ()
