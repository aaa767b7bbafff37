//! The settings of a store. Durability isn't one of them: what is acknowledged is on disk.

use std::fmt;
use std::time::Duration;

use highwater_core::Limits;
use highwater_core::limits::VALUE_BYTES_MAX;
use highwater_wal::{MAX_SEGMENT_BYTES, MIN_SEGMENT_BYTES, SaltSource};

use crate::audit::AuditConfig;

/// The longest payload of one log frame, in bytes: the largest commit's effect and a group before
/// it.
pub(crate) const PAYLOAD_BYTES_MAX: u64 = 32 << 20;
/// What a segment's header block and seal take, at most.
pub(crate) const SEGMENT_HEADER_BYTES: u64 = 4_096 + 256;
/// What a segment needs beside the payload of one frame that fills it: the above and the frame's
/// own header and alignment.
const SEGMENT_OVERHEAD_BYTES: u64 = 8_192;
const _: () =
    assert!(SEGMENT_HEADER_BYTES + crate::room::FRAME_OVERHEAD_BYTES <= SEGMENT_OVERHEAD_BYTES);
/// Ready segments beyond the active one: one to rotate into, one kept back so that deletions can
/// still be logged on a full disk.
pub(crate) const SPARE_SEGMENTS: u32 = 2;

/// Settings of a store. Every one is a bound; the defaults suit a machine with 1 GiB to spare.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bounds on what a commit may carry.
    pub limits: Limits,
    /// Size of a log segment in bytes: a multiple of 4,096 from 64 KiB to 1 GiB. A commit's effect
    /// must fit into one, so small segments refuse large commits.
    pub segment_bytes: u64,
    /// A checkpoint is begun before the log holds more than this, in bytes. It bounds recovery.
    pub log_bytes: u64,
    /// Memory for effects that aren't in the index yet, in bytes. At the half of it a checkpoint is
    /// begun; at the whole of it writers wait.
    pub memory_bytes: usize,
    /// Memory for the latest state of keys that the writer touched, in bytes. Fences and intents
    /// have a quarter of it each beside that.
    pub hot_bytes: usize,
    /// Memory for pages of the index, in bytes.
    pub index_cache_bytes: usize,
    /// How many commits may wait to be judged.
    pub queue_commits: usize,
    /// How many bytes of commits may wait to be judged.
    pub queue_bytes: usize,
    /// A group stops taking commits once it has this many bytes.
    pub group_bytes: usize,
    /// How much history is kept for watches, in bytes of log, in memory and on disk.
    pub history_bytes: usize,
    /// How many deletions are remembered for *unchanged since* conditions.
    pub deletions_max: u64,
    /// How many snapshots may be open.
    pub snapshots_max: usize,
    /// Most callers that wait in line for a guard at once; one more is refused. Each takes a few
    /// hundred bytes beside its request.
    pub waiters_max: usize,
    /// How long a snapshot may be held; after that it is ended, so that it can't pin disk space.
    pub snapshot_age: Duration,
    /// The audit trail; without it there is none.
    pub audit: Option<AuditConfig>,
    /// Where the log's secret numbers come from. Only simulations change it.
    pub salts: SaltSource,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            segment_bytes: 64 << 20,
            log_bytes: 512 << 20,
            memory_bytes: 256 << 20,
            hot_bytes: 256 << 20,
            index_cache_bytes: 128 << 20,
            queue_commits: 8_192,
            queue_bytes: 64 << 20,
            group_bytes: 1 << 20,
            history_bytes: 32 << 20,
            deletions_max: 1_000_000,
            snapshots_max: 1_024,
            waiters_max: 16_384,
            snapshot_age: Duration::from_secs(60),
            audit: None,
            salts: SaltSource::OperatingSystem,
        }
    }
}

/// A setting that is out of its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The field of [`Config`].
    pub field: &'static str,
    /// The lowest allowed value.
    pub min: u64,
    /// The highest allowed value.
    pub max: u64,
    /// What was given.
    pub given: u64,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            min,
            max,
            given,
        } = self;
        write!(f, "{field} is {given}; allowed is {min} to {max}")
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Checks every bound.
    ///
    /// # Errors
    ///
    /// The first setting that is out of its bounds.
    ///
    /// ```
    /// let mut config = highwater::Config::default();
    /// assert!(config.validate().is_ok());
    /// config.queue_commits = 0;
    /// assert_eq!(config.validate().unwrap_err().field, "queue_commits");
    /// ```
    pub fn validate(&self) -> Result<(), ConfigError> {
        let mib = |count: u64| count << 20;
        let tib = mib(1 << 20);
        let aligned = self.segment_bytes.next_multiple_of(4_096);
        let checks = [
            (
                "limits.value_bytes",
                self.limits.value_bytes as u64,
                1,
                VALUE_BYTES_MAX as u64,
            ),
            (
                "segment_bytes",
                self.segment_bytes,
                MIN_SEGMENT_BYTES,
                MAX_SEGMENT_BYTES,
            ),
            ("segment_bytes", self.segment_bytes, aligned, aligned),
            (
                "log_bytes",
                self.log_bytes,
                self.segment_bytes.saturating_mul(2),
                tib,
            ),
            ("memory_bytes", self.memory_bytes as u64, 64 << 10, tib),
            ("hot_bytes", self.hot_bytes as u64, 4 << 10, tib),
            (
                "index_cache_bytes",
                self.index_cache_bytes as u64,
                mib(1),
                tib,
            ),
            ("queue_commits", self.queue_commits as u64, 1, 1 << 20),
            (
                "queue_bytes",
                self.queue_bytes as u64,
                4 << 10,
                mib(1 << 14),
            ),
            ("group_bytes", self.group_bytes as u64, 1, mib(8)),
            ("history_bytes", self.history_bytes as u64, 0, tib),
            ("deletions_max", self.deletions_max, 1, u64::MAX),
            ("snapshots_max", self.snapshots_max as u64, 1, 1 << 20),
            ("waiters_max", self.waiters_max as u64, 1, 1 << 20),
            ("snapshot_age (s)", self.snapshot_age.as_secs(), 1, 86_400),
        ];
        for (field, given, min, max) in checks {
            if given < min || given > max {
                return Err(ConfigError {
                    field,
                    min,
                    max,
                    given,
                });
            }
        }
        self.audit.as_ref().map_or(Ok(()), AuditConfig::validate)
    }

    /// The longest payload of a frame under these settings, in bytes.
    pub(crate) fn payload_bytes_max(&self) -> u32 {
        let fits = self.segment_bytes.saturating_sub(SEGMENT_OVERHEAD_BYTES);
        u32::try_from(fits.min(PAYLOAD_BYTES_MAX)).unwrap_or(u32::MAX)
    }
}
