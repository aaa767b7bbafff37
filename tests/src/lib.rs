//! The test ladder of Highwater: models, checkers, simulated disks, real processes.
//!
//! What several rungs share lives here; the rungs themselves are modules of the integration binary
//! `it`. Nothing of the product depends on this package.
