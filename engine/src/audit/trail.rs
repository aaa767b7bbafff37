//! The files of a trail, and the one who writes them.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use highwater_wal::{Disk, DiskFile};

use super::event::Event;
use super::line::{End, Removed, Writing, file_name, put};
use super::settings::AuditConfig;
use crate::clock::wall_clock_ms;

/// A batch ends once it has so many bytes: it is what a crash can tear.
const BATCH_BYTES: usize = 1 << 20;
/// A file takes lines for such a part of the time that files are kept, so that it can be removed
/// not much later than its oldest line is old enough.
const AGE_SHARE: u128 = 4;

/// A file that takes no more lines.
#[derive(Clone, Debug)]
pub(crate) struct Full {
    pub(crate) removed: Removed,
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// The time of its newest line, or a later one.
    pub(crate) newest_ms: u64,
}

/// The file that takes lines.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) first: u64,
    /// How far it is durable.
    pub(crate) len: u64,
    /// The times of its oldest and its newest line.
    pub(crate) oldest_ms: u64,
    pub(crate) newest_ms: u64,
    /// Whether its name is durable.
    pub(crate) named: bool,
    /// Whether anything may lie behind `len`.
    pub(crate) dirty: bool,
}

/// A trail that is open for writing.
#[derive(Debug)]
pub(crate) struct Trail {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) config: AuditConfig,
    pub(crate) destination: String,
    pub(crate) incarnation: String,
    pub(crate) end: End,
    pub(crate) full: VecDeque<Full>,
    pub(crate) active: Option<Active>,
}

/// Lines on their way into the file.
struct Batch {
    bytes: Vec<u8>,
    end: End,
    count: usize,
}

impl Trail {
    /// Appends events in their order, in as many batches as it takes; each is durable before the
    /// next one is written. How many are durable, also where it fails.
    pub(crate) fn append(&mut self, events: &[Event]) -> (usize, io::Result<()>) {
        let mut done = 0;
        while let Some(rest) = events.get(done..).filter(|rest| !rest.is_empty()) {
            match self.append_some(rest) {
                Ok(count) => done += count,
                Err(error) => return (done, Err(error)),
            }
        }
        (done, Ok(()))
    }

    fn append_some(&mut self, events: &[Event]) -> io::Result<usize> {
        let now = wall_clock_ms();
        self.clear_rest()?;
        if self
            .active
            .as_ref()
            .is_some_and(|active| self.is_old(active, now))
        {
            self.retire();
        }
        let mut batch = self.batch(events, now)?;
        if !self.fits(&batch) {
            self.retire();
            batch = self.batch(events, now)?;
        }
        self.write(batch, now)
    }

    /// Whether so much of the time of keeping has passed that the file is to be the last's no more.
    fn is_old(&self, active: &Active, now: u64) -> bool {
        let age = u128::from(now.saturating_sub(active.oldest_ms));
        active.len > 0 && age > self.config.keep_age.as_millis() / AGE_SHARE
    }

    fn room(&self) -> u64 {
        let len = self.active.as_ref().map_or(0, |active| active.len);
        self.config.file_bytes.saturating_sub(len)
    }

    /// Whether a batch fits into the file; a line that fits into none goes into an empty one.
    fn fits(&self, batch: &Batch) -> bool {
        let empty = self.active.as_ref().is_none_or(|active| active.len == 0);
        empty || batch.bytes.len() as u64 <= self.room()
    }

    /// The first events, as far as they fit; always at least one.
    fn batch(&self, events: &[Event], time_ms: u64) -> io::Result<Batch> {
        let writing = Writing {
            destination: &self.destination,
            incarnation: &self.incarnation,
            batch: self.end.seq.saturating_add(1),
            time_ms,
        };
        let mut batch = Batch {
            bytes: Vec::new(),
            end: self.end.clone(),
            count: 0,
        };
        for event in events {
            let (before, end) = (batch.bytes.len(), batch.end.clone());
            put(&mut batch.bytes, &mut batch.end, &writing, event)?;
            let fits = batch.bytes.len() <= BATCH_BYTES && batch.bytes.len() as u64 <= self.room();
            if !fits && batch.count > 0 {
                batch.bytes.truncate(before);
                batch.end = end;
                break;
            }
            batch.count += 1;
        }
        Ok(batch)
    }

    fn write(&mut self, batch: Batch, now: u64) -> io::Result<usize> {
        let first = self.end.seq.saturating_add(1);
        let mut active = match self.active.take() {
            Some(active) => active,
            None => begin(&*self.disk, first)?,
        };
        active.dirty = true;
        let active = self.active.insert(active);
        active.file.write_all_at(active.len, &batch.bytes)?;
        active.file.sync_data()?;
        if !active.named {
            self.disk.sync_dir()?;
            active.named = true;
        }
        active.dirty = false;
        if active.len == 0 {
            active.oldest_ms = now;
        }
        active.newest_ms = now;
        active.len = active.len.saturating_add(batch.bytes.len() as u64);
        self.end = batch.end;
        Ok(batch.count)
    }

    /// After a failure nobody knows what lies behind the last durable line: it is cut off, and the
    /// file takes no more, since what a failed sync leaves in memory may look written for ever.
    fn clear_rest(&mut self) -> io::Result<()> {
        let Some(active) = self.active.as_mut().filter(|active| active.dirty) else {
            return Ok(());
        };
        active.file.set_len(active.len)?;
        active.file.sync_data()?;
        active.dirty = false;
        self.retire();
        Ok(())
    }

    /// Closes the file to more lines, unless it has none.
    fn retire(&mut self) {
        let Some(active) = self.active.take_if(|active| active.len > 0) else {
            return;
        };
        self.full.push_back(Full {
            name: file_name(active.first),
            removed: Removed {
                first: active.first.to_string(),
                last: self.end.seq.to_string(),
                digest: self.end.digest.clone(),
            },
            bytes: active.len,
            newest_ms: active.newest_ms,
        });
    }

    /// Removes whole files, oldest first, that are beyond the bounds of size or age. That they are
    /// is told in the trail before.
    pub(crate) fn retain(&mut self) -> io::Result<()> {
        let now = wall_clock_ms();
        let active = self.active.as_ref().map_or(0, |active| active.len);
        let mut total: u64 = self.full.iter().map(|full| full.bytes).sum();
        total = total.saturating_add(active);
        let mut gone = Vec::new();
        for full in &self.full {
            let age = u128::from(now.saturating_sub(full.newest_ms));
            if total <= self.config.keep_bytes && age <= self.config.keep_age.as_millis() {
                break;
            }
            total = total.saturating_sub(full.bytes);
            gone.push(full.removed.clone());
        }
        if gone.is_empty() {
            return Ok(());
        }
        let count = gone.len();
        self.append(&[Event::Retention { files: gone }]).1?;
        for _ in 0..count {
            let Some(full) = self.full.front() else { break };
            match self.disk.remove(&full.name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => drop(self.full.pop_front()),
            }
        }
        self.disk.sync_dir()
    }
}

/// Makes an empty file for lines from this sequence on. One of that name has no durable line.
fn begin(disk: &dyn Disk, first: u64) -> io::Result<Active> {
    let name = file_name(first);
    let file = match disk.create(&name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let file = disk.open(&name)?;
            file.set_len(0)?;
            file
        }
        created => created?,
    };
    Ok(Active {
        file,
        first,
        len: 0,
        oldest_ms: 0,
        newest_ms: 0,
        named: false,
        dirty: false,
    })
}

#[cfg(test)]
mod tests {
    use highwater_core::{DestinationId, Incarnation, IncarnationMark, IncarnationNumber};
    use highwater_wal::OsDisk;

    use super::*;
    use crate::audit::{verify_audit, verify_audit_on};

    fn opened() -> Event {
        Event::Opened { at: "1".into() }
    }

    fn trail(dir: &std::path::Path) -> Trail {
        let disk = Arc::new(OsDisk::open(dir).unwrap());
        let mark = IncarnationMark::new(7);
        let incarnation = Incarnation::new(IncarnationNumber::FIRST, mark);
        let destination = DestinationId::new([1; 16]);
        Trail::open(disk, AuditConfig::default(), destination, incarnation).unwrap()
    }

    #[test]
    fn what_is_too_old_goes_and_what_is_not_stays() {
        let dir = tempfile::tempdir().unwrap();
        let mut trail = trail(dir.path());
        for _ in 0..3 {
            trail.append(&[opened()]).1.unwrap();
            trail.retire();
        }
        trail.append(&[opened()]).1.unwrap();
        trail.retain().unwrap();
        assert_eq!(verify_audit(dir.path()).unwrap().files, 4);
        for full in trail.full.iter_mut().take(2) {
            full.newest_ms = 0;
        }
        trail.retain().unwrap();
        let left = verify_audit(dir.path()).unwrap();
        assert_eq!((left.files, left.first, left.last), (2, 3, 5));
        assert_eq!(verify_audit_on(&*trail.disk).unwrap(), left);
    }

    #[test]
    fn a_file_takes_no_more_lines_once_its_oldest_is_old() {
        let dir = tempfile::tempdir().unwrap();
        let mut trail = trail(dir.path());
        trail.append(&[opened()]).1.unwrap();
        trail.append(&[opened()]).1.unwrap();
        assert_eq!(verify_audit(dir.path()).unwrap().files, 1);
        trail.active.as_mut().unwrap().oldest_ms = 0;
        trail.append(&[opened()]).1.unwrap();
        assert_eq!(verify_audit(dir.path()).unwrap().files, 2);
    }

    #[test]
    fn times_and_files_are_known_again_after_an_opening() {
        let dir = tempfile::tempdir().unwrap();
        let mut before = trail(dir.path());
        for _ in 0..3 {
            before.append(&[opened()]).1.unwrap();
            before.retire();
        }
        before.append(&[opened(), opened()]).1.unwrap();
        let after = trail(dir.path());
        assert_eq!(after.end, before.end);
        for (before, after) in before.full.iter().zip(&after.full) {
            assert_eq!(after.removed, before.removed);
            assert_eq!((&after.name, after.bytes), (&before.name, before.bytes));
            assert!(after.newest_ms >= before.newest_ms);
        }
        assert_eq!(after.full.len(), before.full.len());
        let len = |trail: &Trail| trail.active.as_ref().map(|active| active.len);
        assert_eq!(len(&after), len(&before));
    }
}
