//! The program as people and scripts use it: the real binary against a real server.
#![cfg(test)]

mod audit;
mod descriptors;
mod forms;
mod help;
mod intents;
mod leases;
mod lost;
mod servers;
mod support;
mod verdicts;
