"""Support of tests: what several packages of tests draw and set up, and disks that lose power."""
