//! The settings of an audit trail.

use std::time::Duration;

use crate::config::ConfigError;

/// Settings of the audit trail. Every one is a bound, or says what happens at it.
///
/// ```
/// use highwater::{AuditConfig, AuditFailure, Config};
///
/// let audit = AuditConfig { keep_bytes: 256 << 20, ..AuditConfig::default() };
/// assert_eq!(audit.on_failure, AuditFailure::Refuse);
/// let config = Config { audit: Some(audit), ..Config::default() };
/// assert!(config.validate().is_ok());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuditConfig {
    /// A new file is begun before one gets longer than this, in bytes: 64 KiB to 1 GiB.
    pub file_bytes: u64,
    /// The oldest files are removed once all of them take more than this, in bytes: at least twice
    /// `file_bytes`, at most 1 TiB.
    pub keep_bytes: u64,
    /// A file is removed once its newest line is older than this: 1 minute to 10 years. The newest
    /// file stays, however old it is.
    pub keep_age: Duration,
    /// What happens while the trail can't be written.
    pub on_failure: AuditFailure,
    /// How many refusals a second are written for each domain, reason and guard, on the average
    /// of ten seconds: 1 to 1,000. The others are counted.
    pub refusals_per_second: u32,
}

/// What happens while the audit trail can't be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AuditFailure {
    /// Changes are refused until it can be written again.
    Refuse,
    /// Changes are taken. Those that the trail has lost are counted in it, as a gap, as soon as it
    /// can be written again.
    Continue,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self {
            file_bytes: 64 << 20,
            keep_bytes: 1 << 30,
            keep_age: Duration::from_secs(90 * 86_400),
            on_failure: AuditFailure::Refuse,
            refusals_per_second: 1,
        }
    }
}

impl AuditConfig {
    /// Checks every bound.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let kept_min = self.file_bytes.saturating_mul(2);
        let checks = [
            ("audit.file_bytes", self.file_bytes, 64 << 10, 1 << 30),
            ("audit.keep_bytes", self.keep_bytes, kept_min, 1 << 40),
            (
                "audit.keep_age (s)",
                self.keep_age.as_secs(),
                60,
                3_650 * 86_400,
            ),
            (
                "audit.refusals_per_second",
                u64::from(self.refusals_per_second),
                1,
                1_000,
            ),
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
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_taken_iff_it_is_within_its_bounds() {
        let with = |change: &dyn Fn(&mut AuditConfig)| {
            let mut config = AuditConfig {
                file_bytes: 1 << 20,
                ..AuditConfig::default()
            };
            change(&mut config);
            config.validate().err().map(|error| error.field)
        };
        assert_eq!(with(&|_| {}), None);
        for (bytes, wrong) in [(65_535, true), (65_536, false), (1 << 30, false)] {
            let field = wrong.then_some("audit.file_bytes");
            let kept = |config: &mut AuditConfig| {
                config.file_bytes = bytes;
                config.keep_bytes = 1 << 40;
            };
            assert_eq!(with(&kept), field, "{bytes}");
        }
        for (bytes, wrong) in [
            ((2 << 20) - 1, true),
            (2 << 20, false),
            ((1 << 40) + 1, true),
        ] {
            let field = wrong.then_some("audit.keep_bytes");
            assert_eq!(with(&|config| config.keep_bytes = bytes), field, "{bytes}");
        }
        for (seconds, wrong) in [(59, true), (60, false), (3_650 * 86_400 + 1, true)] {
            let field = wrong.then_some("audit.keep_age (s)");
            let age = Duration::from_secs(seconds);
            assert_eq!(with(&|config| config.keep_age = age), field, "{seconds}");
        }
        for (count, wrong) in [(0, true), (1, false), (1_000, false), (1_001, true)] {
            let field = wrong.then_some("audit.refusals_per_second");
            assert_eq!(with(&|config| config.refusals_per_second = count), field);
        }
    }
}
