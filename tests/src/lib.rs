//! The test ladder of Highwater: models, checkers, simulated disks, real processes.
