"""Define and read the records of Kafka's internal topics other than the metadata log.

- other_groups: Define the records of share and streams groups in `__consumer_offsets`.
- by_release: Tell which fields of the records of internal topics a release does not know yet.
- state_topics: Define the records of `__transaction_state`, `__share_group_state` and `__remote_log_metadata`.
"""

from __future__ import annotations

__all__: tuple[str, ...] = ()
