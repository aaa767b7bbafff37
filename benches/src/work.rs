//! The measured work: fenced CAS writes on keys that each writer owns.

use highwater::{
    Authority, Commit, Condition, DomainName, Epoch, Generation, Key, Receipt, Store, Value,
};
use highwater_core::limits::MUTATIONS_MAX;

use crate::drive::Failure;

/// How many keys there are, shared out among the writers.
const KEYS: usize = 100_000;
/// The size of a value, in bytes.
const VALUE_BYTES: usize = 256;

/// The keys of a benchmark with the generations that they are known to have, and whose they are.
#[derive(Clone, Debug)]
pub struct Work {
    domain: DomainName,
    authority: Authority,
    keys: Vec<(Key, Option<Generation>)>,
}

/// One writer's part: its keys, and the generations that it expects.
#[derive(Clone, Debug)]
pub struct Writer {
    domain: DomainName,
    authority: Authority,
    keys: Vec<(Key, Option<Generation>)>,
    random: u64,
}

impl Work {
    /// The work in a domain, with every key written once, so that no case pays for the first touch.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub fn load(store: &Store, domain: DomainName, epoch: Epoch) -> Result<Self, Failure> {
        let authority = Authority::parse(&format!("{epoch}/42@writer"))?;
        let mut keys = Vec::with_capacity(KEYS);
        let names = (0..KEYS).map(|key| Key::new(format!("{key:016x}")));
        let names = names.collect::<Result<Vec<_>, _>>()?;
        for names in names.chunks(MUTATIONS_MAX) {
            let mut commit = Commit::new(domain.clone()).under(authority.clone());
            for name in names {
                commit = commit.put(name.clone(), Value::new([0; VALUE_BYTES])?);
            }
            let receipt = store.commit(commit)?;
            let written = receipt.writes.into_iter();
            keys.extend(written.map(|write| (write.key, write.generation)));
        }
        Ok(Self {
            domain,
            authority,
            keys,
        })
    }

    /// Shares the keys out among so many writers.
    #[must_use]
    pub fn share(&mut self, writers: usize) -> Vec<Writer> {
        let share = (self.keys.len() / writers.max(1)).max(1);
        let mut parts = Vec::with_capacity(writers);
        for number in 0..writers {
            let from = self.keys.len().saturating_sub(share);
            parts.push(Writer {
                domain: self.domain.clone(),
                authority: self.authority.clone(),
                keys: self.keys.split_off(from),
                random: 0x9e37_79b9_7f4a_7c15
                    ^ (number as u64 + 1).wrapping_mul(0x2545_f491_4f6c_dd1d),
            });
        }
        parts
    }

    /// Takes the keys back, with the generations that they have now.
    pub fn give_back(&mut self, writers: impl IntoIterator<Item = Writer>) {
        for writer in writers {
            self.keys.extend(writer.keys);
        }
    }
}

impl Writer {
    /// The next number of a xorshift generator: cheap, and the same in every run.
    const fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// The next commit, and which of the writer's keys it is on.
    ///
    /// # Errors
    ///
    /// None that a benchmark could cause.
    pub fn commit(&mut self) -> Result<(usize, Commit), Failure> {
        let index = usize::try_from(self.next() % self.keys.len() as u64)?;
        let (key, generation) = self.keys.get(index).ok_or("a writer has no keys")?.clone();
        let mut value = [0_u8; VALUE_BYTES];
        for chunk in value.chunks_exact_mut(8) {
            chunk.copy_from_slice(&self.next().to_be_bytes());
        }
        let commit = Commit::new(self.domain.clone())
            .under(self.authority.clone())
            .when(Condition::GenerationIs {
                key: key.clone(),
                generation,
            })
            .put(key, Value::new(value)?);
        Ok((index, commit))
    }

    /// Notes the new generation of a key, so that the next write on it can expect it.
    pub fn note(&mut self, index: usize, receipt: &Receipt) {
        let generation = receipt.writes.first().and_then(|write| write.generation);
        if let Some((_, known)) = self.keys.get_mut(index) {
            *known = generation;
        }
    }
}
