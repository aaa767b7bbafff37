//! Fenced durable commits, embedded: from 1 to 256 writers, as threads and as tasks, each beside
//! the bare limit and a yardstick. `HIGHWATER_BENCH_SECONDS` and `HIGHWATER_BENCH_ROUNDS` set the
//! length.

use highwater::{Commit, Config, DomainName, Policy, Receipt, Store};
use highwater_benches::{Case, Failure, On, Target, Work, Yardstick, compare, side_by_side};

fn main() -> Result<(), Failure> {
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
    let mut work = Work::load(&store, jobs, epoch)?;
    let like = one_receipt(&store, &mut work)?;
    let (blocking, waiting) = (Blocking(store.clone()), Waiting(store.clone()));
    let cases = [
        Case {
            name: "threads",
            run: Box::new(|count, work| side_by_side(On::Threads, &blocking, count, work)),
        },
        Case {
            name: "yardstick",
            run: Box::new(|count, work| {
                let yardstick = Yardstick::begin(dir.path(), like.clone())?;
                side_by_side(On::Threads, &yardstick, count, &mut work.clone())
            }),
        },
        Case {
            name: "tasks",
            run: Box::new(|count, work| side_by_side(On::Tasks(&runtime), &waiting, count, work)),
        },
    ];
    let title = "fenced CAS writes, embedded, durable before the answer";
    compare(title, dir.path(), &mut work, &cases)?;
    store.close()?;
    Ok(())
}

/// What the store answers to one commit of the work.
fn one_receipt(store: &Store, work: &mut Work) -> Result<Receipt, Failure> {
    let mut writer = work.share(1).pop().ok_or("no writer")?;
    let (index, commit) = writer.commit()?;
    let receipt = store.commit(commit)?;
    writer.note(index, &receipt);
    work.give_back([writer]);
    Ok(receipt)
}

/// A store whose answer a thread waits for.
#[derive(Clone)]
struct Blocking(Store);

impl Target for Blocking {
    async fn commit(&self, commit: Commit) -> Result<Receipt, Failure> {
        Ok(self.0.commit(commit)?)
    }
}

/// A store whose answer a task waits for.
#[derive(Clone)]
struct Waiting(Store);

impl Target for Waiting {
    async fn commit(&self, commit: Commit) -> Result<Receipt, Failure> {
        Ok(self.0.commit_async(commit).await?)
    }
}
