//! Connections and the file descriptors that the system gives a process.
//!
//! Every connection is a descriptor, and so is every file of the store. Were connections to take
//! them all, the store couldn't begin the next segment of its log, and writes would stop because of
//! clients that only listen.

use rustix::process::{Resource, getrlimit};

use crate::error::ServeError;
use crate::options::ServeOptions;

/// File descriptors that connections leave to everything else: the files of the store, the
/// listening socket, the runtime, and what the process had before.
pub const DESCRIPTORS_RESERVED: usize = 64;

impl ServeOptions {
    /// These options with no more connections than the process's limit of file descriptors
    /// (`ulimit -n`) has room for, beside [`DESCRIPTORS_RESERVED`]. A lower bound is logged.
    /// [`crate::serve`] does this by itself; before it, one finds out what will hold.
    ///
    /// # Errors
    ///
    /// [`ServeError::Descriptors`] where there is room for none.
    ///
    /// # Example
    ///
    /// ```
    /// use highwater_server::ServeOptions;
    ///
    /// # fn main() -> Result<(), highwater_server::ServeError> {
    /// let wanted = ServeOptions { connections_max: 1_000_000, ..ServeOptions::default() };
    /// let fitted = wanted.clone().within_descriptors()?;
    /// assert!(fitted.connections_max <= wanted.connections_max);
    /// assert_eq!(fitted.clone().within_descriptors()?, fitted);
    /// # Ok(())
    /// # }
    /// ```
    pub fn within_descriptors(mut self) -> Result<Self, ServeError> {
        let Some(limit) = getrlimit(Resource::Nofile).current else {
            return Ok(self);
        };
        let wanted = self.connections_max;
        let connections_max = fit(wanted, limit).ok_or(ServeError::Descriptors { limit })?;
        if connections_max < wanted {
            tracing::warn!(
                wanted,
                connections_max,
                limit,
                "the limit of file descriptors (ulimit -n) has room for fewer connections"
            );
        }
        self.connections_max = connections_max;
        Ok(self)
    }
}

/// How many of the wanted connections fit; `None` where none does.
fn fit(wanted: usize, limit: u64) -> Option<usize> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let room = limit.saturating_sub(DESCRIPTORS_RESERVED);
    (room > 0).then(|| wanted.min(room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_get_what_is_left_and_no_more_than_is_wanted() {
        let reserved = DESCRIPTORS_RESERVED as u64;
        for (wanted, limit, fitting) in [
            (1_024, reserved, None),
            (1_024, 0, None),
            (1_024, reserved + 1, Some(1)),
            (1_024, reserved + 1_023, Some(1_023)),
            (1_024, reserved + 1_024, Some(1_024)),
            (1_024, reserved + 1_025, Some(1_024)),
            (1, u64::MAX, Some(1)),
        ] {
            assert_eq!(fit(wanted, limit), fitting, "{wanted} of {limit}");
        }
    }
}
