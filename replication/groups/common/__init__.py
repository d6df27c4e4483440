"""Events, coordinator settings, stored records, checks and counts of groups."""
