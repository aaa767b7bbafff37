//! Segments that carry no frame now, and those that carry only confirmed ones.
//!
//! Making and recycling a segment takes long and must not stand in the way of an append, so this
//! part of the log can be worked on by another thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, DiskFile, write_zeros};
use crate::error::{IoOp, LogError, io_error, space_error};
use crate::lsn::Lsn;
use crate::options::LogOptions;
use crate::recovery::Catalogue;
use crate::segment::{log_name, spare_name, unfinished_name};

/// The sealed and the spare segments of a log; shared between [`Log`](crate::Log) and whoever
/// prepares and recycles segments.
///
/// The directory changes under one lock at a time, and every change of a name is made durable
/// before the next one, oldest segment first, so that a crash never leaves a gap in the sequence.
#[derive(Debug)]
pub struct SegmentPool {
    disk: Arc<dyn Disk>,
    segment_bytes: u64,
    spare_target: usize,
    poisoned: AtomicBool,
    /// Held over all slow work; taken before `state`.
    work: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Oldest first.
    sealed: VecDeque<Sealed>,
    /// At most `spare_target`, plus one that a failed rotation gave back.
    spares: Vec<Spare>,
    next_spare_id: u64,
    lacking: Option<Lacking>,
}

impl State {
    /// Keeps a new spare: whatever was lacking was there.
    fn add(&mut self, spare: Spare) {
        self.spares.push(spare);
        self.lacking = None;
    }
}

/// What there wasn't enough of to make a spare segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacking {
    /// Space on the disk, or a quota of it.
    Space,
    /// A file descriptor.
    Descriptor,
}

/// A segment that gets no more frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sealed {
    pub(crate) number: u64,
    /// Number of its first data frame.
    pub(crate) first: Lsn,
    /// Number of the first data frame that is not in it.
    pub(crate) end: Lsn,
    pub(crate) bytes: u64,
}

/// A segment with all its space, without content that counts.
#[derive(Debug)]
pub(crate) struct Spare {
    pub(crate) id: u64,
    pub(crate) file: Box<dyn DiskFile>,
}

/// Sums over the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolStatus {
    pub(crate) first: Option<Lsn>,
    pub(crate) sealed: usize,
    pub(crate) spares: usize,
    pub(crate) bytes: u64,
}

impl SegmentPool {
    /// Takes over the spares that are there and removes what cannot be used.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        options: &LogOptions,
        catalogue: &Catalogue,
        sealed: VecDeque<Sealed>,
    ) -> Result<Self, LogError> {
        let next_spare_id = catalogue.spares.last().map_or(1, |id| id.saturating_add(1));
        let pool = Self {
            disk,
            segment_bytes: options.segment_bytes,
            spare_target: usize::try_from(options.spare_segments).unwrap_or(usize::MAX),
            poisoned: AtomicBool::new(false),
            work: Mutex::new(()),
            state: Mutex::new(State {
                sealed,
                spares: Vec::new(),
                next_spare_id,
                lacking: None,
            }),
        };
        for name in &catalogue.unfinished {
            pool.disk
                .remove(name)
                .map_err(io_error(IoOp::Remove, name))?;
        }
        for id in &catalogue.spares {
            let name = spare_name(*id);
            match pool.reusable(&name) {
                Some(file) => lock(&pool.state).spares.push(Spare { id: *id, file }),
                None => pool
                    .disk
                    .remove(&name)
                    .map_err(io_error(IoOp::Remove, &name))?,
            }
        }
        pool.sync_dir()?;
        Ok(pool)
    }

    /// Makes spare segments until there are as many as [`LogOptions::spare_segments`] asks for.
    /// Appending goes on meanwhile.
    ///
    /// # Errors
    /// [`LogError::Full`] without space, [`LogError::NoDescriptor`] without a file descriptor,
    /// [`LogError::Io`] if the storage fails: the log can be used in all cases, until its active
    /// segment is full. [`LogError::Poisoned`], or `Io` of a
    /// directory sync, if it cannot be used.
    pub fn ensure_spare(&self) -> Result<(), LogError> {
        loop {
            let _turn = lock(&self.work);
            self.check()?;
            let mut state = lock(&self.state);
            if state.spares.len() >= self.spare_target {
                state.lacking = None;
                return Ok(());
            }
            drop(state);
            let built = self.build();
            let mut state = lock(&self.state);
            match built {
                Ok(spare) => state.add(spare),
                Err(error) => {
                    state.lacking = match error {
                        LogError::Full { .. } => Some(Lacking::Space),
                        LogError::NoDescriptor { .. } => Some(Lacking::Descriptor),
                        _ => None,
                    };
                    return Err(error);
                }
            }
        }
    }

    /// Gives up every sealed segment whose frames are all at or below `lsn`: it becomes a spare,
    /// or is removed if there are enough. The active segment always stays. The caller must have
    /// made durable elsewhere whatever it still needs of these frames.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails; the segments not given up yet stay, and the log can
    /// be used unless it was the directory sync that failed. [`LogError::Poisoned`] if it cannot.
    pub fn recycle_through(&self, lsn: Lsn) -> Result<(), LogError> {
        loop {
            let _turn = lock(&self.work);
            self.check()?;
            let oldest = lock(&self.state).sealed.front().copied();
            let covered = |segment: &Sealed| lsn.next().is_none_or(|next| segment.end <= next);
            let Some(segment) = oldest.filter(covered) else {
                return Ok(());
            };
            self.retire(segment.number)?;
            lock(&self.state).sealed.pop_front();
        }
    }

    /// Turns a segment that is no longer needed into a spare, or removes it.
    pub(crate) fn retire(&self, number: u64) -> Result<(), LogError> {
        let name = log_name(number);
        let Some(file) = self.reusable(&name) else {
            self.disk
                .remove(&name)
                .map_err(io_error(IoOp::Remove, &name))?;
            return self.sync_dir();
        };
        let id = self.draw_spare_id();
        self.disk
            .rename(&name, &spare_name(id))
            .map_err(io_error(IoOp::Rename, &name))?;
        // Used before this is durable, the old name could come back with a foreign header.
        self.sync_dir()?;
        lock(&self.state).add(Spare { id, file });
        Ok(())
    }

    /// Takes a spare, and makes one only if none is ready.
    pub(crate) fn take(&self) -> Result<Spare, LogError> {
        self.check()?;
        let ready = lock(&self.state).spares.pop();
        if let Some(spare) = ready {
            return Ok(spare);
        }
        let _turn = lock(&self.work);
        self.check()?;
        // Whoever had the lock may have left one.
        let ready = lock(&self.state).spares.pop();
        ready.map_or_else(|| self.build(), Ok)
    }

    /// Takes back a spare that could not be put to use. Its name must be its old one.
    pub(crate) fn give_back(&self, spare: Spare) {
        lock(&self.state).spares.push(spare);
    }

    pub(crate) fn add_sealed(&self, segment: Sealed) {
        lock(&self.state).sealed.push_back(segment);
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// Size of every segment that comes from this pool.
    pub(crate) const fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Makes the names durable; if that fails, nothing may be built on them any more.
    pub(crate) fn sync_dir(&self) -> Result<(), LogError> {
        self.disk
            .sync_dir()
            .map_err(io_error(IoOp::SyncDir, ""))
            .inspect_err(|_| self.poison())
    }

    /// Stops the log for good.
    pub(crate) fn poison(&self) {
        self.poisoned.store(true, Ordering::Release);
    }

    /// Whether the log was stopped.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    pub(crate) fn check(&self) -> Result<(), LogError> {
        if self.is_poisoned() {
            Err(LogError::Poisoned)
        } else {
            Ok(())
        }
    }

    /// What the last attempt to make a spare segment lacked; `None` from the moment on at which
    /// there is a new one, or the attempt failed for another reason.
    #[must_use]
    pub fn lacking(&self) -> Option<Lacking> {
        lock(&self.state).lacking
    }

    /// How many segments are ready to be used.
    #[must_use]
    pub fn spares(&self) -> usize {
        lock(&self.state).spares.len()
    }

    pub(crate) fn status(&self) -> PoolStatus {
        let state = lock(&self.state);
        let spare_bytes = state.spares.len() as u64 * self.segment_bytes;
        PoolStatus {
            first: state.sealed.front().map(|segment| segment.first),
            sealed: state.sealed.len(),
            spares: state.spares.len(),
            bytes: state
                .sealed
                .iter()
                .map(|segment| segment.bytes)
                .sum::<u64>()
                + spare_bytes,
        }
    }

    /// Makes a segment: all space reserved and written once, so that a frame in it changes
    /// nothing but its own bytes and costs one sync of them. The caller holds `work`.
    fn build(&self) -> Result<Spare, LogError> {
        let id = self.draw_spare_id();
        let (unfinished, name) = (unfinished_name(id), spare_name(id));
        let file = self
            .disk
            .create(&unfinished)
            .map_err(space_error(IoOp::Create, &unfinished))?;
        let named = self.fill(&*file, &unfinished).and_then(|()| {
            let renamed = self.disk.rename(&unfinished, &name);
            renamed.map_err(space_error(IoOp::Rename, &unfinished))
        });
        if let Err(error) = named {
            // Only tidying up: if this fails too, the next opening removes the file.
            let _ = self.disk.remove(&unfinished);
            return Err(error);
        }
        self.sync_dir()?;
        Ok(Spare { id, file })
    }

    fn fill(&self, file: &dyn DiskFile, name: &str) -> Result<(), LogError> {
        file.allocate(self.segment_bytes)
            .map_err(space_error(IoOp::Allocate, name))?;
        write_zeros(file, 0, self.segment_bytes).map_err(space_error(IoOp::Write, name))?;
        file.sync_data().map_err(space_error(IoOp::Sync, name))
    }

    /// The file, if it is wanted as a spare and fit to be one. Whatever is wrong with it, it
    /// holds nothing that is needed.
    fn reusable(&self, name: &str) -> Option<Box<dyn DiskFile>> {
        if lock(&self.state).spares.len() >= self.spare_target {
            return None;
        }
        let file = self.disk.open(name).ok()?;
        let fits = file.len().ok()? == self.segment_bytes;
        // Nobody knows who made it: it may have holes.
        (fits && file.allocate(self.segment_bytes).is_ok()).then_some(file)
    }

    fn draw_spare_id(&self) -> u64 {
        let mut state = lock(&self.state);
        let id = state.next_spare_id;
        state.next_spare_id = id.saturating_add(1);
        id
    }
}

/// Every change under these locks is complete before anything can panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
