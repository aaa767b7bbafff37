//! Conversions and statuses, through the package's public face.
#![cfg(test)]

mod intents;
mod leases;
mod malformed;
mod round_trip;
mod samples;
mod statuses;
