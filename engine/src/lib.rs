//! A durable key-value store that fences: stale writers are refused in the commit path.
