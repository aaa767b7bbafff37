//! The wire contract of Highwater: generated types and their conversion to and from the core's.
