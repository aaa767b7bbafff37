//! Devices that fail: every operation of a workload once, and from there on.
