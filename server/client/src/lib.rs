//! The Rust client of Highwater: a session that holds an authority and types every rejection.
