//! A leader-elected controller: two replicas of one program, of which one may act.
//!
//! It brings a number of workers to what is wanted. Whoever leads acts under the term of its lease;
//! the store refuses everybody else, also a leader that was paused and doesn't know that it was
//! replaced. Run it with `cargo run -p highwater --example controller`.

use std::error::Error;
use std::time::Duration;

use highwater::{
    Acquire, Authority, Commit, Condition, Config, DomainName, Guard, GuardRule, Holder, Key,
    LeaseId, Mutation, Policy, Receipt, Store, Ttl, Value,
};

/// How long a leader may be silent before another one takes its place.
const LEASE: Duration = Duration::from_secs(2);
/// How long a replica waits to become the leader before it gives up.
const PATIENCE: Duration = Duration::from_secs(30);

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// One replica of the controller.
struct Replica {
    store: Store,
    name: &'static str,
    /// What it was granted, while it believes that it leads.
    lead: Option<(Authority, LeaseId)>,
}

fn domain() -> Outcome<DomainName> {
    Ok(DomainName::new("controller")?)
}

impl Replica {
    fn new(store: &Store, name: &'static str) -> Self {
        Self {
            store: store.clone(),
            name,
            lead: None,
        }
    }

    /// Waits in line until it leads. Its term fences every earlier leader in the same step.
    fn lead(&mut self) -> Outcome {
        let ttl = u64::try_from(LEASE.as_millis())?;
        let ttl = Ttl::new(ttl).ok_or("no such time to live")?;
        let request = Acquire::new(domain()?, Guard::new("")?, Holder::new(self.name)?, ttl);
        let receipt = self.store.acquire(request, PATIENCE)?;
        let granted = receipt.leases.first().ok_or("no lease was granted")?;
        println!("{} leads under {}", self.name, granted.lease.authority());
        self.lead = Some((granted.lease.authority(), granted.lease.id));
        Ok(())
    }

    /// Says that it still lives. A leader whose lease is gone hears of it here.
    fn renew(&self) -> Outcome<Receipt> {
        let (authority, lease) = self.lead.clone().ok_or("it doesn't lead")?;
        let (guard, ttl) = (Guard::new("")?, None);
        let commit = Commit::new(domain()?)
            .under(authority)
            .with(Mutation::Renew { guard, lease, ttl });
        Ok(self.store.commit(commit)?)
    }

    /// One round: look at what is wanted and what is, and write one step towards it. The step holds
    /// only for the state that was looked at, and only while this replica is the latest leader.
    fn round(&self) -> Outcome<u64> {
        let (authority, _) = self.lead.clone().ok_or("it doesn't lead")?;
        let (wanted, actual) = (Key::new("wanted")?, Key::new("actual")?);
        let snapshot = self.store.snapshot()?;
        let goal = snapshot
            .get(&domain()?, &wanted)?
            .ok_or("nothing is wanted")?;
        let state = snapshot.get(&domain()?, &actual)?;
        let number =
            |value: &Value| -> Outcome<u64> { Ok(std::str::from_utf8(value.as_bytes())?.parse()?) };
        let have = state
            .as_ref()
            .map_or(Ok(0), |record| number(&record.value))?;
        if have == number(&goal.value)? {
            return Ok(have);
        }
        let next = have + 1;
        let commit = Commit::new(domain()?)
            .under(authority)
            .when(Condition::GenerationIs {
                key: wanted,
                generation: Some(goal.generation),
            })
            .when(Condition::GenerationIs {
                key: actual.clone(),
                generation: state.map(|record| record.generation),
            })
            .put(actual, Value::new(next.to_string())?);
        self.store.commit(commit)?;
        println!("{} started worker {next}", self.name);
        Ok(next)
    }
}

/// Plays an election, a leader that is paused, and its replacement.
pub(crate) fn main() -> Outcome {
    let dir = tempfile::tempdir()?;
    let store = Store::open(dir.path(), Config::default())?;
    // One leader for the whole domain: one guard, the empty one.
    let policy = Policy::default().with_guard(GuardRule::Domain)?;
    store.create_domain(domain()?, policy, None)?;
    let (mut a, mut b) = (Replica::new(&store, "a"), Replica::new(&store, "b"));

    a.lead()?;
    let (first, _) = a.lead.clone().ok_or("it doesn't lead")?;
    let want = Commit::new(domain()?)
        .under(first)
        .put(Key::new("wanted")?, Value::new("3")?);
    store.commit(want)?;
    a.renew()?;
    a.round()?;

    println!("a is paused; its lease lapses, and b, which waits, takes over");
    b.lead()?;
    b.round()?;

    println!("a wakes up and goes on where it was");
    match a.round() {
        Err(refused) => println!("a is told: {refused}"),
        Ok(done) => return Err(format!("the old leader went on, to {done}").into()),
    }
    if b.round()? != 3 {
        return Err("what is wanted isn't reached".into());
    }
    store.close()?;
    Ok(())
}
