//! The real process: killed, starved, lied to and asked to end, and seen only from outside, through
//! the wire, its exit status and its system calls.
#![cfg(test)]

mod faults;
mod full;
mod intents;
mod kill;
mod ledger;
mod life;
mod order;
mod readonly;
mod support;
mod volume;
mod watches;
mod wire;
