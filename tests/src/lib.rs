//! The test ladder of Highwater: models, checkers, simulated disks, real processes.
//!
//! What several rungs share lives here; the rungs themselves are modules of the integration binary
//! `it`. Nothing of the product depends on this package.
//!
//! * [`raw`] says requests and answers in bare numbers and bytes, and translates them.
//! * [`model`] is the contract a second time, naively, over those.
//! * [`guards`] and [`plans`] are its parts about guards and intents.
//! * [`history`] checks what concurrent callers saw against the model.
//! * [`disk`] is a disk that fails on demand; [`trace`] is what a power cut leaves of it.
//! * [`chance`] is chance that can be repeated.

pub mod chance;
pub mod disk;
pub mod guards;
pub mod history;
pub mod model;
#[path = "../../engine/core/tests/shared/plans.rs"]
pub mod plans;
pub mod raw;
pub mod seen;
pub mod trace;
