//! What an intent costs: the same fenced durable commits without one, and as the first and last
//! step of one each. `HIGHWATER_BENCH_SECONDS` and `HIGHWATER_BENCH_ROUNDS` set the length.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use highwater::{Commit, Config, DomainName, IntentId, Policy, Receipt, Step, Store};
use highwater_benches::{Case, Failure, On, Target, Work, compare, side_by_side};

fn main() -> Result<(), Failure> {
    let dir = tempfile::tempdir_in(".")?;
    let store = Store::open(dir.path().join("store"), Config::default())?;
    let jobs = DomainName::new("jobs")?;
    let domain = store.create_domain(jobs.clone(), Policy::default(), None)?;
    let epoch = domain.epochs.current().epoch;
    let mut work = Work::load(&store, jobs, epoch)?;
    let (plain, intended) = (
        Plain(store.clone()),
        Intended(store.clone(), Arc::default()),
    );
    let cases = [
        Case {
            name: "without",
            run: Box::new(|count, work| side_by_side(On::Threads, &plain, count, work)),
        },
        Case {
            name: "with intent",
            run: Box::new(|count, work| side_by_side(On::Threads, &intended, count, work)),
        },
    ];
    let title = "fenced CAS writes, embedded, without and with an intent";
    compare(title, dir.path(), &mut work, &cases)?;
    store.close()?;
    Ok(())
}

/// Commits as they come.
#[derive(Clone)]
struct Plain(Store);

impl Target for Plain {
    async fn commit(&self, commit: Commit) -> Result<Receipt, Failure> {
        Ok(self.0.commit(commit)?)
    }
}

/// Each commit is an intent of its own.
#[derive(Clone)]
struct Intended(Store, Arc<AtomicU64>);

impl Target for Intended {
    async fn commit(&self, commit: Commit) -> Result<Receipt, Failure> {
        let number = self.1.fetch_add(1, Ordering::Relaxed);
        let id = IntentId::new(format!("operation/{number:012}"))?;
        let commit = commit.for_intent(id, Step::FIRST).completing();
        Ok(self.0.commit(commit)?)
    }
}
