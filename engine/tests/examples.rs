//! The examples run to their end, as a reader would run them.
#![cfg(test)]

#[path = "../examples/controller.rs"]
mod controller;
#[path = "../examples/worker.rs"]
mod worker;

#[test]
fn a_controller_that_was_paused_is_told_to_stop() {
    controller::main().unwrap();
}

#[test]
fn a_job_is_done_once_by_whoever_comes() {
    worker::main().unwrap();
}
