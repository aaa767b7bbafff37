//! The loop that every case runs, and the rounds in which cases and limit take turns.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use highwater::{Commit, Receipt};
use tokio::runtime::Runtime;

use crate::limit::bare_limit;
use crate::report::{Report, Sample};
use crate::work::{Work, Writer};
use crate::{measure_for, rounds, writers};

/// Whatever ends a benchmark.
pub type Failure = Box<dyn Error + Send + Sync>;

/// The time of every commit of one run, unordered.
pub type Times = Result<Vec<Duration>, Failure>;

/// What commits are sent to.
pub trait Target: Clone + Send + Sync + 'static {
    /// Commits, and returns when the commit is durable.
    fn commit(&self, commit: Commit) -> impl Future<Output = Result<Receipt, Failure>> + Send;
}

/// What writers run on.
#[derive(Clone, Copy, Debug)]
pub enum On<'a> {
    /// A thread for each, for targets that block.
    Threads,
    /// A task for each, on this runtime.
    Tasks(&'a Runtime),
}

/// Runs so many writers side by side for the time of one measurement. Each sends its next commit
/// when the last one is answered. Returns the time of every commit.
///
/// # Errors
///
/// The first of a writer: a commit that isn't accepted, or a panic.
pub fn side_by_side(on: On<'_>, target: &impl Target, count: usize, work: &mut Work) -> Times {
    let end = Instant::now() + measure_for();
    let parts = work.share(count).into_iter();
    let loops = parts.map(|writer| closed_loop(target.clone(), writer, end));
    let ended: Vec<Result<_, Failure>> = match on {
        On::Threads => {
            let start = |running| std::thread::spawn(move || pollster::block_on(running));
            let threads: Vec<_> = loops.map(start).collect();
            let join = |thread: std::thread::JoinHandle<_>| {
                thread.join().map_err(|_| "a writer panicked")?
            };
            threads.into_iter().map(join).collect()
        }
        On::Tasks(runtime) => {
            let tasks: Vec<_> = loops.map(|running| runtime.spawn(running)).collect();
            let join = |task| runtime.block_on(task)?;
            tasks.into_iter().map(join).collect()
        }
    };
    let mut all = Vec::new();
    for one in ended {
        let (times, writer) = one?;
        all.extend(times);
        work.give_back([writer]);
    }
    Ok(all)
}

async fn closed_loop(
    target: impl Target,
    mut writer: Writer,
    end: Instant,
) -> Result<(Vec<Duration>, Writer), Failure> {
    let mut times = Vec::new();
    while Instant::now() < end {
        let (index, commit) = writer.commit()?;
        let begun = Instant::now();
        let receipt = target.commit(commit).await?;
        times.push(begun.elapsed());
        writer.note(index, &receipt);
    }
    Ok((times, writer))
}

/// Runs a case once, with so many writers.
pub type Run<'a> = Box<dyn Fn(usize, &mut Work) -> Times + 'a>;

/// A way to write that is measured.
pub struct Case<'a> {
    /// What a line of the table calls it, behind the number of writers.
    pub name: &'static str,
    /// How it is run.
    pub run: Run<'a>,
}

/// Measures cases with 1, 8, 64 and 256 writers, each in every round right behind the bare limit in
/// the same directory, and prints their table.
///
/// # Errors
///
/// The first that a case or the limit ends with.
pub fn compare(
    title: &str,
    dir: &Path,
    work: &mut Work,
    cases: &[Case<'_>],
) -> Result<(), Failure> {
    let report = Report::begin(title);
    for count in writers(&[1, 8, 64, 256]) {
        let mut samples: Vec<_> = cases.iter().map(|case| (case, Vec::new())).collect();
        for _ in 0..rounds() {
            for (case, samples) in &mut samples {
                let limit = bare_limit(dir, count, measure_for())?;
                samples.push(Sample::take(limit, || (case.run)(count, work))?);
            }
        }
        for (case, samples) in samples {
            report.line(&format!("{count} {}", case.name), &samples);
        }
    }
    Ok(())
}
