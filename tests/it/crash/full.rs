//! Disks that are full.
