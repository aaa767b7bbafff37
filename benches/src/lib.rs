//! Benchmarks of Highwater.
