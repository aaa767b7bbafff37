//! A job worker: it does a job once, whoever starts it and however often.
//!
//! It takes the job's lease, says what it is about to do and from which input, and commits its
//! result as one step with that. One that comes after a lost worker asks what became of it before
//! it does anything. Run it with `cargo run -p highwater --example worker`.

use std::error::Error;

use highwater::{
    Acquire, Authority, Commit, Condition, Config, DomainName, Effects, Guard, GuardRule, Holder,
    Input, IntentId, Key, Mutation, Owner, Policy, Receipt, Step, Store, TakeOver, Ttl, Value,
    Work,
};

/// How long a lease lasts, in milliseconds. This program ends before.
const LEASE_MS: u64 = 60_000;
/// Records of the job that a replacement reads at once.
const PAGE: usize = 100;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn jobs() -> Outcome<DomainName> {
    Ok(DomainName::new("jobs")?)
}

/// A worker that may write to one job.
struct Worker {
    store: Store,
    authority: Authority,
}

impl Worker {
    /// Takes the job's lease. From now on nobody who held it before can write to the job.
    fn take(store: &Store, job: &str, name: &str) -> Outcome<Self> {
        let ttl = Ttl::new(LEASE_MS).ok_or("no such time to live")?;
        let request = Acquire::new(jobs()?, Guard::new(job)?, Holder::new(name)?, ttl);
        let receipt = store.commit(request.commit())?;
        let granted = receipt.leases.first().ok_or("no lease was granted")?;
        Ok(Self {
            store: store.clone(),
            authority: granted.lease.authority(),
        })
    }

    /// The operation, named for what it means: the same for every worker that tries it.
    fn operation(job: &str) -> Outcome<IntentId> {
        Ok(IntentId::new(format!("report/{job}"))?)
    }

    /// Does the job: binds the operation to its input, works, and commits. If its input has changed
    /// meanwhile, or somebody else has the job, nothing is written.
    fn work(&self, job: &str) -> Outcome<Receipt> {
        let input = Key::new(format!("{job}/input"))?;
        let read = self.store.get(&jobs()?, &input)?.ok_or("no input")?;
        let bind = Mutation::BindIntent {
            intent: Self::operation(job)?,
            work: Work::under(Guard::new(job)?).from_input(Input::Key {
                key: input.clone(),
                generation: Some(read.generation),
            }),
        };
        let bind = Commit::new(jobs()?)
            .under(self.authority.clone())
            .with(bind);
        self.store.commit(bind)?;

        let result = format!("{} bytes", read.value.as_bytes().len());
        let commit = Commit::new(jobs()?)
            .for_intent(Self::operation(job)?, Step::FIRST)
            .completing()
            .under(self.authority.clone())
            .when(Condition::GenerationIs {
                key: input,
                generation: Some(read.generation),
            })
            .put(Key::new(format!("{job}/result"))?, Value::new(result)?);
        Ok(self.store.commit(commit)?)
    }

    /// What a replacement does first: fence, and ask what became of the operation.
    fn resume(&self, job: &str) -> Outcome<Receipt> {
        let taken = self.store.take_over(TakeOver {
            domain: jobs()?,
            guard: Guard::new(job)?,
            authority: self.authority.clone(),
            intents: vec![Self::operation(job)?],
            destination: None,
            caller: None,
            limit: PAGE,
        })?;
        let found = taken.found.first().ok_or("no answer")?;
        match found.finding.effects {
            Effects::Present => {
                let steps = found.record.iter().flat_map(|record| &record.steps);
                let done = steps.last().ok_or("no receipt")?;
                println!("{job} was done at revision {}", done.receipt.revision);
                Ok(done.receipt.clone())
            }
            Effects::Absent => {
                println!("{job} was not done, and the lost worker can't do it any more");
                self.work(job)
            }
            Effects::Indeterminate => Err("nobody can say; a person has to".into()),
        }
    }
}

fn revoke(store: &Store, job: &str) -> Outcome {
    let revoke = Mutation::Revoke {
        guard: Guard::new(job)?,
        lease: None,
        by: Owner::new("operator")?,
    };
    store.commit(Commit::new(jobs()?).with(revoke))?;
    Ok(())
}

/// Plays two workers that are lost, one after its commit and one before, and their replacement.
pub(crate) fn main() -> Outcome {
    let dir = tempfile::tempdir()?;
    let store = Store::open(dir.path(), Config::default())?;
    let by_job = GuardRule::Prefix {
        delimiter: b'/',
        depth: 1,
    };
    store.create_domain(jobs()?, Policy::default().with_guard(by_job)?, None)?;
    for job in ["one", "two"] {
        let planner = Worker::take(&store, job, "planner")?;
        let input = Commit::new(jobs()?).under(planner.authority.clone()).put(
            Key::new(format!("{job}/input"))?,
            Value::new("a long text")?,
        );
        store.commit(input)?;
        revoke(&store, job)?;
    }

    let lost = Worker::take(&store, "one", "w1")?;
    let first = lost.work("one")?;
    println!("w1 did job one, and was lost before it could say so");
    let slow = Worker::take(&store, "two", "w2")?;
    println!("w2 took job two, and stands still");
    revoke(&store, "one")?;
    revoke(&store, "two")?;

    let told = Worker::take(&store, "one", "w3")?.resume("one")?;
    if told.revision != first.revision {
        return Err("job one was done twice".into());
    }
    Worker::take(&store, "two", "w3")?.resume("two")?;
    match slow.work("two") {
        Err(refused) => println!("w2 is told: {refused}"),
        Ok(receipt) => return Err(format!("w2 went on: {}", receipt.revision).into()),
    }
    store.close()?;
    Ok(())
}
