//! The Highwater server and command line.
