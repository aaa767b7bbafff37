//! The store of the demonstration, and what the steps do with it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Barrier;

use highwater::{
    Admission, Authority, Commit, Condition, Config, DomainName, Epoch, EpochMark, Generation,
    Guard, GuardRule, Holder, Key, Limits, Policy, Receipt, Sequence, Store, TakeOver, Term, Value,
};
use tempfile::TempDir;

use super::account::LEDGER;
use super::check::{ACCEPTED, REPLAYED, Seen};
use super::timeline::{Act, EpochOf};
use crate::cli::failure::Failure;
use crate::cli::input::InputError;

/// Records of one page that a take-over reads.
const PAGE_RECORDS: usize = 16;

/// A store in a directory of its own, removed at the end.
pub(crate) struct World {
    pub(super) store: Store,
    dir: TempDir,
    pub(super) jobs: DomainName,
    inputs: DomainName,
    epoch: Epoch,
    /// The generation of the first result.
    first: Option<Generation>,
    /// What the store itself has granted last to each worker.
    pub(super) granted: BTreeMap<&'static str, Authority>,
}

/// The name of a verdict, the sentence for people, and the fence that it states.
pub(super) type Verdict = (Option<String>, String, Option<(u64, String)>);

/// A small store: a few megabytes of disk and memory.
fn config() -> Config {
    Config {
        limits: Limits {
            value_bytes: 4 << 10,
        },
        segment_bytes: 256 << 10,
        log_bytes: 1 << 20,
        memory_bytes: 1 << 20,
        hot_bytes: 256 << 10,
        index_cache_bytes: 1 << 20,
        history_bytes: 64 << 10,
        ..Config::default()
    }
}

fn open(dir: &Path) -> Result<Store, Failure> {
    Store::open(dir, config()).map_err(|error| Failure::Open(Box::new(error)))
}

fn system(what: &'static str) -> impl Fn(io::Error) -> Failure {
    move |source| Failure::System { what, source }
}

fn domain(name: &str) -> Result<DomainName, InputError> {
    Ok(DomainName::new(name)?)
}

pub(super) fn key(name: &str) -> Result<Key, InputError> {
    Ok(Key::new(name)?)
}

pub(super) fn value(text: &str) -> Result<Value, InputError> {
    Ok(Value::new(text)?)
}

/// Copies the files of a directory that has no directories in it.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

impl World {
    /// Makes the store and its domains.
    pub(crate) fn open() -> Result<Self, Failure> {
        let dir = TempDir::new().map_err(system("make a temporary directory"))?;
        let store = open(dir.path())?;
        let (jobs, inputs) = (domain("jobs")?, domain("inputs")?);
        let by_job = GuardRule::Prefix {
            delimiter: b'/',
            depth: 1,
        };
        let policy = Policy::default()
            .with_guard(by_job)
            .map_err(InputError::from)?;
        let made = store.create_domain(jobs.clone(), policy, None)?;
        let free = Policy::default().with_admission(Admission::Open);
        store.create_domain(inputs.clone(), free, None)?;
        Ok(Self {
            store,
            dir,
            jobs,
            inputs,
            epoch: made.epochs.current().epoch,
            first: None,
            granted: BTreeMap::new(),
        })
    }

    /// Closes the store.
    pub(crate) fn close(self) -> Result<(), Failure> {
        self.store.close()?;
        self.dir
            .close()
            .map_err(system("remove the temporary directory"))
    }

    /// The result of the job, or of the account, as it is stored.
    fn result(&self, act: &Act) -> Result<Option<(Generation, String)>, Failure> {
        let name = if act.is_payment() { LEDGER } else { "J/result" };
        let record = self.store.get(&self.jobs, &key(name)?)?;
        let text = |value: &Value| String::from_utf8_lossy(value.as_bytes()).into_owned();
        Ok(record.map(|record| (record.generation, text(&record.value))))
    }

    /// Does what a step says.
    pub(crate) fn perform(&mut self, act: &Act) -> Result<Seen, Failure> {
        let before = self.result(act)?.map(|(generation, _)| generation);
        let (verdict, message, fence) = match *act {
            Act::Outside => (None, String::new(), None),
            Act::Publish(version) => {
                let commit = Commit::new(self.inputs.clone()).put(key("J")?, value(version)?);
                self.store.commit(commit)?;
                (None, String::new(), None)
            }
            Act::TakeOver {
                sequence,
                holder,
                input,
            } => {
                verdict(self.take_over(self.authority(EpochOf::Domain, sequence, holder)?, input))?
            }
            Act::Write {
                epoch,
                sequence,
                holder,
                result,
                if_first_generation,
            } => {
                let authority = self.authority(epoch, sequence, holder)?;
                verdict(self.write(authority, result, if_first_generation))?
            }
            Act::Race => self.race()?,
            Act::Acquire { holder } => verdict(self.acquire(holder))?,
            Act::Revoke => {
                self.revoke()?;
                (None, String::new(), None)
            }
            Act::Bind { holder, intent } => verdict(self.bind(holder, intent))?,
            Act::Pay {
                holder,
                intent,
                ledger,
            } => verdict(self.pay(holder, intent, ledger))?,
            Act::Reconcile { holder, intent } => self.reconcile(holder, intent)?,
            Act::Kill => {
                self.kill()?;
                (None, String::new(), None)
            }
        };
        let after = self.result(act)?;
        let generation = after.as_ref().map(|(generation, _)| *generation);
        if !act.is_payment() {
            self.first = self.first.or(generation);
        }
        Ok(Seen {
            verdict,
            message,
            fence,
            result: after.map(|(_, text)| text),
            generation_kept: before == generation,
        })
    }

    /// The authority that the coordinator granted, or that somebody claims to have.
    fn authority(&self, epoch: EpochOf, sequence: u64, holder: &str) -> Result<Authority, Failure> {
        let epoch = match epoch {
            EpochOf::Domain => self.epoch,
            EpochOf::Stranger => Epoch::new(
                self.epoch.number(),
                EpochMark::new(!self.epoch.mark().get()),
            ),
        };
        let what = "sequence";
        let sequence = Sequence::new(sequence).ok_or(InputError::Number { what })?;
        let holder = Holder::new(holder).map_err(InputError::from)?;
        Ok(Authority::new(Term { epoch, sequence }, holder))
    }

    fn take_over(&self, authority: Authority, input: &str) -> Result<Receipt, Failure> {
        let taken = self.store.take_over(TakeOver {
            domain: self.jobs.clone(),
            guard: Guard::new("J").map_err(InputError::from)?,
            authority,
            intents: Vec::new(),
            destination: None,
            caller: None,
            limit: PAGE_RECORDS,
        })?;
        let read = self.store.get(&self.inputs, &key("J")?)?;
        match read.filter(|record| record.value.as_bytes() == input.as_bytes()) {
            Some(_) => Ok(taken.receipt),
            None => Err(Failure::Demo),
        }
    }

    fn write(
        &self,
        authority: Authority,
        result: &str,
        if_first_generation: bool,
    ) -> Result<Receipt, Failure> {
        let name = key("J/result")?;
        let mut commit = Commit::new(self.jobs.clone())
            .under(authority)
            .put(name.clone(), value(result)?);
        if if_first_generation {
            commit = commit.when(Condition::GenerationIs {
                key: name,
                generation: self.first,
            });
        }
        Ok(self.store.commit(commit)?)
    }

    /// Two threads create the same key at once. The verdict names both outcomes, sorted.
    fn race(&self) -> Result<Verdict, Failure> {
        let name = key("claim")?;
        let start = Barrier::new(2);
        let claim = |who: &str| {
            let commit = Commit::new(self.inputs.clone())
                .when(Condition::GenerationIs {
                    key: name.clone(),
                    generation: None,
                })
                .put(name.clone(), value(who)?);
            start.wait();
            let (verdict, ..) = verdict(self.store.commit(commit).map_err(Failure::from))?;
            Ok::<_, Failure>(verdict.unwrap_or_default())
        };
        let outcomes = std::thread::scope(|scope| {
            let other = scope.spawn(|| claim("second"));
            let mine = claim("first");
            [mine, other.join().unwrap_or(Err(Failure::Demo))]
        });
        let mut names: Vec<String> = outcomes.into_iter().collect::<Result<_, _>>()?;
        names.sort();
        let both = names.join(" and ");
        Ok((Some(both.clone()), both, None))
    }

    /// Copies the store's files while it is open, as its death would leave them: nothing is closed,
    /// flushed or tidied first. Goes on with a store that is opened on the copy.
    fn kill(&mut self) -> Result<(), Failure> {
        let dir = TempDir::new().map_err(system("make a temporary directory"))?;
        copy(self.dir.path(), dir.path()).map_err(system("copy the store's files"))?;
        let store = open(dir.path())?;
        let old = std::mem::replace(&mut self.store, store);
        old.close()?;
        self.dir = dir;
        Ok(())
    }
}

/// A fence, as it is compared with what must come out.
pub(super) fn stated(fence: &highwater::Fence) -> (u64, String) {
    let holder = highwater::escape(fence.holder.as_bytes());
    (fence.term.sequence.get(), holder)
}

/// The verdict of a commit: its name, the sentence, and the fence that it states.
fn verdict(outcome: Result<Receipt, Failure>) -> Result<Verdict, Failure> {
    match outcome {
        Ok(receipt) => {
            let fence = receipt.guards.first().map(|guard| stated(&guard.fence));
            let message = match receipt.guards.first() {
                _ if receipt.replayed => format!("the answer of revision {}", receipt.revision),
                Some(guard) => format!("guard '{}' is fenced at {}", guard.guard, guard.fence),
                None => format!("revision {}", receipt.revision),
            };
            let word = if receipt.replayed { REPLAYED } else { ACCEPTED };
            Ok((Some(word.into()), message, fence))
        }
        Err(failure) => match failure.rejection() {
            Some(rejection) => {
                let fence = rejection.observed.fence.as_ref().map(stated);
                let code = rejection.reason.code().into();
                Ok((Some(code), rejection.to_string(), fence))
            }
            None => Err(failure),
        },
    }
}
