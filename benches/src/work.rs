//! The measured work: fenced CAS writes on keys that each writer owns.

use std::error::Error;

use highwater::{Authority, Commit, Condition, DomainName, Epoch, Generation, Key, Receipt, Value};

/// How many keys there are, shared out among the writers.
const KEYS: usize = 100_000;
/// The size of a value, in bytes.
const VALUE_BYTES: usize = 256;

/// The work of all writers of one case.
#[derive(Clone, Debug)]
pub struct Work {
    domain: DomainName,
    epoch: Epoch,
    writers: usize,
    case: u64,
}

/// One writer's part: its keys, and the generations that it expects.
#[derive(Clone, Debug)]
pub struct Writer {
    domain: DomainName,
    authority: Authority,
    keys: Vec<Key>,
    generations: Vec<Option<Generation>>,
    random: u64,
}

impl Work {
    /// The work of so many writers in a domain. Cases of different number use different keys.
    #[must_use]
    pub const fn new(domain: DomainName, epoch: Epoch, writers: usize, case: u64) -> Self {
        Self {
            domain,
            epoch,
            writers,
            case,
        }
    }

    /// One writer's part.
    ///
    /// # Errors
    ///
    /// None that a benchmark could cause; the names are made here.
    pub fn writer(&self, number: usize) -> Result<Writer, Box<dyn Error>> {
        let share = (KEYS / self.writers.max(1)).max(1);
        let first = share * number;
        let names = (first..first + share).map(|key| format!("{:04x}{key:012x}", self.case));
        let keys = names.map(Key::new).collect::<Result<Vec<_>, _>>()?;
        Ok(Writer {
            domain: self.domain.clone(),
            authority: Authority::parse(&format!("{}/42@writer-{number}", self.epoch))?,
            generations: vec![None; keys.len()],
            keys,
            random: 0x9e37_79b9_7f4a_7c15 ^ (number as u64).wrapping_mul(0x2545_f491_4f6c_dd1d),
        })
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
    pub fn commit(&mut self) -> Result<(usize, Commit), Box<dyn Error>> {
        let index = usize::try_from(self.next() % self.keys.len() as u64)?;
        let key = self.keys.get(index).ok_or("a writer has no keys")?.clone();
        let generation = self.generations.get(index).copied().flatten();
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
        if let Some(place) = self.generations.get_mut(index) {
            *place = generation;
        }
    }
}
