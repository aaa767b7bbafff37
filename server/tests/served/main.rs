//! A real store, served on a socket, seen through the Rust client.
#![cfg(test)]

mod gate;
mod harness;
mod holders;
mod intents;
mod leases;
mod pages;
mod pipelines;
mod proxy;
mod reconciling;
mod repeats;
mod requests;
mod sessions;
mod shutdowns;
mod watches;
