"""Share the parts of a group alone and in the cluster: events, settings, stored records, checks, counts."""
