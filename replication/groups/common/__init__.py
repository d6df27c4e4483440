"""Share what a group needs alone and in the cluster: events, coordinator settings, stored records, checks, counts."""
