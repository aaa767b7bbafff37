//! Fenced durable commits, embedded: from 1 to 256 writers, as threads and as tasks, each beside
//! the bare limit. `HIGHWATER_BENCH_SECONDS` and `HIGHWATER_BENCH_ROUNDS` set the length.

use std::error::Error;
use std::time::{Duration, Instant};

use highwater::{Config, DomainName, Policy, Store};
use highwater_benches::{Report, Sample, Work, Writer, bare_limit, measure_for, rounds, writers};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    // In the build's directory, on the disk that holds the project: a temporary directory may be in
    // memory, where nothing costs anything.
    let dir = tempfile::tempdir_in(".")?;
    let store = Store::open(dir.path().join("store"), Config::default())?;
    let jobs = DomainName::new("jobs")?;
    let domain = store.create_domain(jobs.clone(), Policy::default(), None)?;
    let epoch = domain.epochs.current().epoch;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let report = Report::begin("fenced CAS writes, embedded, durable before the answer");
    let loaded = Work::load(&store, jobs, epoch);
    let mut work = loaded.map_err(|error| error.to_string())?;
    for writers in writers(&[1, 8, 64, 256]) {
        let mut by_threads = Vec::new();
        let mut by_tasks = Vec::new();
        for _ in 0..rounds() {
            let limit = bare_limit(dir.path(), writers, measure_for())?;
            by_threads.push(Sample::take(limit, || {
                run_threads(&store, &mut work, writers)
            })?);
            let limit = bare_limit(dir.path(), writers, measure_for())?;
            by_tasks.push(Sample::take(limit, || {
                run_tasks(&runtime, &store, &mut work, writers)
            })?);
        }
        report.line(&format!("{writers} threads"), &by_threads);
        report.line(&format!("{writers} tasks"), &by_tasks);
    }
    store.close()?;
    Ok(())
}

fn run_threads(store: &Store, work: &mut Work, writers: usize) -> Result<Vec<Duration>> {
    let end = Instant::now() + measure_for();
    let threads: Vec<_> = work
        .share(writers)
        .into_iter()
        .map(|mut writer| {
            let store = store.clone();
            std::thread::spawn(move || -> Result<(Vec<Duration>, Writer)> {
                let mut times = Vec::new();
                while Instant::now() < end {
                    let (index, commit) = writer.commit().map_err(|e| e.to_string())?;
                    let begun = Instant::now();
                    let receipt = store.commit(commit)?;
                    times.push(begun.elapsed());
                    writer.note(index, &receipt);
                }
                Ok((times, writer))
            })
        })
        .collect();
    let mut all = Vec::new();
    for thread in threads {
        let (times, writer) = thread.join().map_err(|_| "a writer panicked")??;
        all.extend(times);
        work.give_back([writer]);
    }
    Ok(all)
}

fn run_tasks(
    runtime: &tokio::runtime::Runtime,
    store: &Store,
    work: &mut Work,
    writers: usize,
) -> Result<Vec<Duration>> {
    let end = Instant::now() + measure_for();
    let tasks: Vec<_> = work
        .share(writers)
        .into_iter()
        .map(|mut writer| {
            let store = store.clone();
            runtime.spawn(async move {
                let mut times = Vec::new();
                while Instant::now() < end {
                    let (index, commit) = writer.commit().map_err(|e| e.to_string())?;
                    let begun = Instant::now();
                    let receipt = store.commit_async(commit).await?;
                    times.push(begun.elapsed());
                    writer.note(index, &receipt);
                }
                Ok::<_, Box<dyn Error + Send + Sync>>((times, writer))
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        let (times, writer) = runtime.block_on(task)??;
        all.extend(times);
        work.give_back([writer]);
    }
    Ok(all)
}
