//! A real store, served on a socket, seen through the Rust client.
#![cfg(test)]

mod harness;
mod pages;
mod pipelines;
mod requests;
mod sessions;
mod shutdowns;
mod watches;
