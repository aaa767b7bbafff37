//! A yardstick, not a store: a hash map that checks what the measured work asks, a log that is
//! preallocated, one thread that judges and syncs what waits. No index, no checkpoint, no history,
//! nothing to read or recover with. How far it stays below the bare limit is what handing work from
//! thread to thread costs on this machine.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use hashbrown::HashMap;
use highwater::{
    Authorities, Commit, Condition, Fence, Generation, Key, Mutation, Receipt, Revision, Value,
};
use highwater_core::Standing;
use tokio::sync::oneshot;

use crate::drive::{Failure, Target};
use crate::limit::{FILE_BYTES, RECORD_BYTES};

/// How many commits may wait.
const QUEUE_MAX: usize = 1_024;

type Rows<T> = HashMap<Key, T, foldhash::fast::RandomState>;
type Asked = (Commit, oneshot::Sender<Option<Generation>>);

/// A handle on the thread that judges and syncs. The thread ends with the last handle.
#[derive(Clone, Debug)]
pub struct Yardstick {
    queue: SyncSender<Asked>,
    like: Receipt,
}

impl Yardstick {
    /// Begins with an empty map and a new log in a directory. Its receipts are `like` this one, but
    /// for the generation.
    ///
    /// # Errors
    ///
    /// What the file system says.
    pub fn begin(dir: &Path, like: Receipt) -> io::Result<Self> {
        let mut log = File::create(dir.join("yardstick"))?;
        let zeros = vec![0_u8; 1 << 20];
        for _ in 0..FILE_BYTES >> 20 {
            log.write_all(&zeros)?;
        }
        log.sync_all()?;
        let (queue, asked) = sync_channel(QUEUE_MAX);
        let state = State {
            rows: HashMap::default(),
            fences: HashMap::default(),
            revision: like.revision,
        };
        std::thread::spawn(move || serve(state, &asked, &log));
        Ok(Self { queue, like })
    }
}

impl Target for Yardstick {
    async fn commit(&self, commit: Commit) -> Result<Receipt, Failure> {
        let (promise, answer) = oneshot::channel();
        self.queue.send((commit, promise))?;
        let generation = answer.await?.ok_or("refused")?;
        let mut receipt = self.like.clone();
        for write in &mut receipt.writes {
            write.generation = Some(generation);
        }
        Ok(receipt)
    }
}

struct State {
    rows: Rows<(Generation, Value)>,
    fences: Rows<Fence>,
    revision: Revision,
}

fn serve(mut state: State, asked: &Receiver<Asked>, log: &File) -> io::Result<()> {
    let mut records = Vec::new();
    let mut answers = Vec::new();
    let mut at = 0_u64;
    while let Ok(first) = asked.recv() {
        records.clear();
        for (commit, promise) in std::iter::once(first).chain(asked.try_iter()) {
            answers.push((promise, state.judge(commit, &mut records)));
        }
        if at + records.len() as u64 > FILE_BYTES {
            at = 0;
        }
        log.write_all_at(&records, at)?;
        log.sync_data()?;
        at += records.len() as u64;
        for (promise, answer) in answers.drain(..) {
            // Nobody waits any more where the measurement is over.
            let _ = promise.send(answer);
        }
    }
    Ok(())
}

impl State {
    /// The check of the measured work: the fence isn't higher, and the generation is the one that
    /// is expected. A key that was never written here passes with any.
    fn judge(&mut self, commit: Commit, records: &mut Vec<u8>) -> Option<Generation> {
        let (Authorities::One(authority), Some(Mutation::Put { key, value, .. })) =
            (commit.authority, commit.mutations.into_iter().next())
        else {
            return None;
        };
        let Some(Condition::GenerationIs { generation, .. }) = commit.conditions.first() else {
            return None;
        };
        let known = self.rows.get(&key).map(|(known, _)| *known);
        let fence = self.fences.get(&key);
        let fenced = fence.is_some_and(|fence| authority.standing(fence) == Standing::Older);
        if fenced || (known.is_some() && known != *generation) {
            return None;
        }
        self.revision = self.revision.next()?;
        let next = Generation::of(self.revision);
        let begin = records.len();
        records.extend_from_slice(&self.revision.get().to_be_bytes());
        records.extend_from_slice(key.as_bytes());
        records.extend_from_slice(value.as_bytes());
        records.resize(begin + RECORD_BYTES, 0);
        self.fences.insert(key.clone(), authority.to_fence());
        self.rows.insert(key, (next, value));
        Some(next)
    }
}
