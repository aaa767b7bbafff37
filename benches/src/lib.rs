//! What the benchmarks of Highwater share: the work that is measured, the bare limit of the disk
//! beside it, and the table that both are printed in.
//!
//! The work is the *fenced CAS write*: a 16-byte key, a 256-byte random value, an authority, and
//! the generation that is expected; durable before the answer. Every writer owns a share of the
//! keys. The limit is what the same bytes cost without a store: appended to a file that was
//! preallocated and written before, one `fdatasync` for each group of as many records as there are
//! writers.
//!
//! Absolute figures don't carry over to another machine or another hour. Limit and store are
//! measured in turn, several times, and compared by the ratio of each pair.

mod drive;
mod limit;
mod report;
mod work;
mod yardstick;

pub use drive::{Case, Failure, On, Run, Target, Times, compare, side_by_side};
pub use limit::bare_limit;
pub use report::{Report, Sample};
pub use work::{Work, Writer};
pub use yardstick::Yardstick;

use std::time::Duration;

use mimalloc::MiMalloc;

/// The allocator of the `highwater` program. What a commit allocates is mostly freed by another
/// thread, which not every allocator is good at.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How long one measurement lasts: `HIGHWATER_BENCH_SECONDS`, else 3 s.
#[must_use]
pub fn measure_for() -> Duration {
    Duration::from_secs(from_environment("HIGHWATER_BENCH_SECONDS", 3))
}

/// How many times each pair is measured: `HIGHWATER_BENCH_ROUNDS`, else 3.
#[must_use]
pub fn rounds() -> u64 {
    from_environment("HIGHWATER_BENCH_ROUNDS", 3)
}

/// The numbers of writers that are measured: those named in `HIGHWATER_BENCH_WRITERS`, separated by
/// commas, else all of `usual`.
#[must_use]
pub fn writers(usual: &[usize]) -> Vec<usize> {
    let given = std::env::var("HIGHWATER_BENCH_WRITERS").unwrap_or_default();
    let named = given.split(',').filter_map(|name| name.trim().parse().ok());
    let named: Vec<usize> = named.filter(|number| *number > 0).collect();
    if named.is_empty() {
        usual.to_vec()
    } else {
        named
    }
}

fn from_environment(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
    given.filter(|number| *number > 0).unwrap_or(default)
}
