//! The printed table: medians of several rounds, and the ratio of each pair.

use std::time::{Duration, Instant};

/// One round of one case.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Commits per second.
    pub rate: f64,
    /// The bare limit's records per second, measured just before.
    pub limit: f64,
    /// The bare limit's median time of one group.
    pub sync: Duration,
    /// The time of every commit, unordered.
    pub latencies: Vec<Duration>,
}

impl Sample {
    /// Runs a case once, beside a limit that was just measured: its rate and the median time of a
    /// group. The case returns the time of every commit.
    ///
    /// # Errors
    ///
    /// What the case returns.
    pub fn take<E>(
        (limit, sync): (f64, Duration),
        case: impl FnOnce() -> Result<Vec<Duration>, E>,
    ) -> Result<Self, E> {
        let start = Instant::now();
        let latencies = case()?;
        let rate = latencies.len() as f64 / start.elapsed().as_secs_f64();
        Ok(Self {
            rate,
            limit,
            sync,
            latencies,
        })
    }
}

/// A table that grows by a line for each case.
#[derive(Debug, Default)]
pub struct Report;

impl Report {
    /// Prints what the table shows and its head.
    #[must_use]
    pub fn begin(title: &str) -> Self {
        println!("\n{title}");
        println!(
            "{:<22} {:>10} {:>10} {:>7} {:>7} {:>9} {:>9} {:>9} {:>9}",
            "case",
            "commits/s",
            "limit/s",
            "ratio",
            "spread",
            "sync us",
            "p50 us",
            "p99 us",
            "p99.9"
        );
        Self
    }

    /// Prints the medians of a case.
    pub fn line(&self, case: &str, samples: &[Sample]) {
        let rates = sorted(samples.iter().map(|sample| sample.rate));
        let limits = sorted(samples.iter().map(|sample| sample.limit));
        let ratios = sorted(samples.iter().map(|sample| sample.rate / sample.limit));
        let syncs = sorted(samples.iter().map(|sample| micros(sample.sync)));
        let all = samples.iter().flat_map(|sample| &sample.latencies);
        let times = sorted(all.map(|time| micros(*time)));
        let spread = at(&ratios, 1.0) - at(&ratios, 0.0);
        println!(
            "{case:<22} {:>10.0} {:>10.0} {:>7.2} {spread:>7.2} {:>9.0} {:>9.0} {:>9.0} {:>9.0}",
            at(&rates, 0.5),
            at(&limits, 0.5),
            at(&ratios, 0.5),
            at(&syncs, 0.5),
            at(&times, 0.5),
            at(&times, 0.99),
            at(&times, 0.999),
        );
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The value below which this share of them lies.
fn at(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let index = (last as f64 * share).round();
    sorted.get(index as usize).copied().unwrap_or(f64::NAN)
}
