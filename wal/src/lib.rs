//! The write-ahead log of Highwater: checksummed, chained, preallocated, recycled segments.
