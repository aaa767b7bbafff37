//! What many open intents and many live leases take in memory and on disk, and how long the store
//! takes to open with them. `HIGHWATER_BENCH_INTENTS` and `HIGHWATER_BENCH_LEASES` set how many.

use std::path::Path;
use std::time::Instant;

use highwater::{
    Authority, Commit, Config, DomainName, Guard, Holder, IntentId, Mutation, Policy, Store, Ttl,
    Work,
};
use highwater_benches::Failure;

/// Mutations of one commit: as many as there may be about intents, and about leases.
const INTENTS_AT_ONCE: usize = 16;
const LEASES_AT_ONCE: usize = 64;
/// Nothing lapses meanwhile.
const TTL_MS: u64 = 24 * 60 * 60 * 1_000;

fn main() -> Result<(), Failure> {
    let intents = number("HIGHWATER_BENCH_INTENTS", 1_000_000)?;
    let leases = number("HIGHWATER_BENCH_LEASES", 100_000)?;
    let dir = tempfile::tempdir_in(".")?;
    let jobs = DomainName::new("jobs")?;
    let store = Store::open(dir.path(), Config::default())?;
    let domain = store.create_domain(jobs.clone(), Policy::default(), None)?;
    let epoch = domain.epochs.current().epoch;
    let authority = Authority::parse(&format!("{epoch}/1@worker"))?;
    tell("empty", dir.path())?;

    for part in (0..intents).collect::<Vec<_>>().chunks(INTENTS_AT_ONCE) {
        let mut commit = Commit::new(jobs.clone()).under(authority.clone());
        for number in part {
            commit = commit.with(Mutation::BindIntent {
                intent: IntentId::new(format!("operation/{number:012}"))?,
                work: Work::under(Guard::new(format!("job/{}", number % 1_000))?),
            });
        }
        store.commit(commit)?;
    }
    tell(&format!("{intents} open intents"), dir.path())?;

    let ttl = Ttl::new(TTL_MS).ok_or("no such time to live")?;
    for part in (0..leases).collect::<Vec<_>>().chunks(LEASES_AT_ONCE) {
        let mut commit = Commit::new(jobs.clone());
        for number in part {
            commit = commit.with(Mutation::Acquire {
                guard: Guard::new(format!("lease/{number:012}"))?,
                holder: Holder::new("worker")?,
                ttl,
                seal: true,
                supersede: false,
            });
        }
        store.commit(commit)?;
    }
    tell(&format!("and {leases} live leases"), dir.path())?;
    store.close()?;
    drop(store);
    tell("closed", dir.path())?;
    let begun = Instant::now();
    let store = Store::open(dir.path(), Config::default())?;
    let (took, live) = (begun.elapsed(), store.status().leases);
    tell(&format!("opened in {took:.2?}, {live} live"), dir.path())?;
    store.close()?;
    Ok(())
}

fn number(name: &str, usual: usize) -> Result<usize, Failure> {
    match std::env::var(name) {
        Ok(text) => Ok(text.parse()?),
        Err(_) => Ok(usual),
    }
}

/// Says what the process and the directory take now.
fn tell(what: &str, dir: &Path) -> Result<(), Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let memory = line.and_then(|line| line.split_whitespace().nth(1));
    let kib: u64 = memory.ok_or("no figure of memory")?.parse()?;
    let mut disk = 0;
    for entry in std::fs::read_dir(dir)? {
        disk += entry?.metadata()?.len();
    }
    println!(
        "{what:<40} {:>6} MiB in memory {:>6} MiB on disk",
        kib >> 10,
        disk >> 20
    );
    Ok(())
}
