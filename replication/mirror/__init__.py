"""One cluster copied into another, as MirrorMaker 2 does it: topics, offsets, groups, and what a failover costs."""
