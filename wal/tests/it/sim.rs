//! A directory in memory that knows what is durable and what is not.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use highwater_wal::{Disk, DiskFile};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SECTOR: usize = 512;

/// What an operation that changes something did. Reads are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Create,
    Rename,
    Remove,
    SyncDir,
    Write,
    SetLen,
    Allocate,
    SyncData,
}

/// What happens at a chosen operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is under way when the process ends: nothing after it happens.
    Crash,
    /// It fails with this error and does nothing.
    Error(io::ErrorKind),
    /// It fails, and what was to be made durable counts as clean from now on: it can be read,
    /// but no later sync makes it durable.
    SyncLoses,
}

/// What a power cut leaves of the changes that were not durable.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    AllLost,
    AllKept,
    /// All but the last write, and of that one this many bytes.
    TornAt(usize),
    /// Any subset of the sectors, any number of the changed names.
    Random(u64),
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Len(usize),
}

#[derive(Clone, Debug)]
enum NameChange {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
}

#[derive(Clone, Debug, Default)]
struct Inode {
    live: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

type Names = BTreeMap<String, usize>;

#[derive(Clone, Debug, Default)]
struct World {
    inodes: Vec<Inode>,
    live: Names,
    durable: Names,
    pending: Vec<NameChange>,
    ops: Vec<(Op, String)>,
    fault: Option<(usize, Fault)>,
    crashed: bool,
}

/// A handle on the simulated directory; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimDisk(Arc<Mutex<World>>);

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: usize,
}

impl SimDisk {
    /// A directory with these files, all durable.
    pub(crate) fn with_files(files: &BTreeMap<String, Vec<u8>>) -> Self {
        let disk = Self::default();
        {
            let mut world = disk.world();
            for (name, bytes) in files {
                let inode = world.inodes.len();
                let (live, durable) = (bytes.clone(), bytes.clone());
                world.inodes.push(Inode {
                    live,
                    durable,
                    pending: Vec::new(),
                });
                world.live.insert(name.clone(), inode);
            }
            world.durable = world.live.clone();
        }
        disk
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    /// Lets `fault` happen at the operation with this index, counted from the beginning.
    pub(crate) fn set_fault(&self, at: usize, fault: Fault) {
        self.world().fault = Some((at, fault));
    }

    /// The operations so far, with the file each was done to.
    pub(crate) fn ops(&self) -> Vec<(Op, String)> {
        self.world().ops.clone()
    }

    /// All files as a running process sees them.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let world = self.world();
        let content = |inode: &usize| world.inodes[*inode].live.clone();
        world
            .live
            .iter()
            .map(|(name, inode)| (name.clone(), content(inode)))
            .collect()
    }

    /// The same disk after the process has died but the machine has not.
    pub(crate) fn after_kill(&self) -> Self {
        let mut world = self.world().clone();
        (world.crashed, world.fault) = (false, None);
        world.ops.clear();
        Self(Arc::new(Mutex::new(world)))
    }

    /// The disk after a power cut.
    pub(crate) fn after_cut(&self, cut: Cut) -> Self {
        let world = self.world();
        let mut rng = StdRng::seed_from_u64(if let Cut::Random(seed) = cut { seed } else { 0 });
        let kept_names = match cut {
            Cut::AllLost => 0,
            Cut::AllKept | Cut::TornAt(_) => world.pending.len(),
            Cut::Random(_) => rng.random_range(0..=world.pending.len()),
        };
        let mut names = world.durable.clone();
        for change in &world.pending[..kept_names] {
            change.apply(&mut names);
        }
        let content = |inode: &usize| world.inodes[*inode].after_cut(cut, &mut rng);
        let mut content = content;
        let files = names
            .iter()
            .map(|(name, inode)| (name.clone(), content(inode)))
            .collect();
        drop(world);
        Self::with_files(&files)
    }

    /// Length of the last write that is not durable, where there is one.
    pub(crate) fn torn_len(&self) -> Option<usize> {
        let world = self.world();
        let last = |inode: &Inode| match inode.pending.last() {
            Some(Change::Write { bytes, .. }) => Some(bytes.len()),
            _ => None,
        };
        world.inodes.iter().filter_map(last).next_back()
    }

    /// Counts an operation; `Err` if it must not happen, `Ok(true)` if it is the last one.
    fn count(&self, op: Op, name: &str) -> io::Result<(MutexGuard<'_, World>, bool)> {
        let mut world = self.world();
        if world.crashed {
            return Err(io::Error::other("the process has ended"));
        }
        let index = world.ops.len();
        world.ops.push((op, name.to_owned()));
        match world.fault {
            Some((at, Fault::Error(kind))) if at == index => Err(kind.into()),
            Some((at, Fault::Crash)) if at == index => {
                world.crashed = true;
                Ok((world, true))
            }
            _ => Ok((world, false)),
        }
    }

    fn change_names(&self, op: Op, name: &str, change: NameChange) -> io::Result<()> {
        let (mut world, last) = self.count(op, name)?;
        change.apply(&mut world.live);
        world.pending.push(change);
        finish(last)
    }
}

/// The operation that the process ends in has happened in memory, but nobody is told.
fn finish(last: bool) -> io::Result<()> {
    if last {
        Err(io::Error::other("the process ends here"))
    } else {
        Ok(())
    }
}

impl NameChange {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Create(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            Self::Rename(from, to) => {
                let inode = names.remove(from).unwrap();
                names.insert(to.clone(), inode);
            }
            Self::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Len(len) => content.resize(*len, 0),
            Self::Write { offset, bytes } => write(content, *offset, bytes),
        }
    }
}

fn write(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

impl Inode {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.live);
        self.pending.push(change);
    }

    fn after_cut(&self, cut: Cut, rng: &mut StdRng) -> Vec<u8> {
        let mut content = self.durable.clone();
        for (index, change) in self.pending.iter().enumerate() {
            let last = index + 1 == self.pending.len();
            match (cut, change) {
                (Cut::AllLost, _) => {}
                (Cut::TornAt(kept), Change::Write { offset, bytes }) if last => {
                    write(&mut content, *offset, &bytes[..kept.min(bytes.len())]);
                }
                (Cut::AllKept | Cut::TornAt(_), _) => change.apply(&mut content),
                (Cut::Random(_), Change::Write { offset, bytes }) => {
                    write_some_sectors(&mut content, *offset, bytes, rng);
                }
                (Cut::Random(_), Change::Len(_)) => {
                    if rng.random() {
                        change.apply(&mut content);
                    }
                }
            }
        }
        content
    }
}

fn write_some_sectors(content: &mut Vec<u8>, offset: usize, bytes: &[u8], rng: &mut StdRng) {
    let mut at = 0;
    while at < bytes.len() {
        let sector_end = (offset + at) / SECTOR * SECTOR + SECTOR - offset;
        let end = sector_end.min(bytes.len());
        if rng.random() {
            write(content, offset + at, &bytes[at..end]);
        }
        at = end;
    }
}

impl Disk for SimDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.world().live.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        if self.world().live.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = {
            let mut world = self.world();
            world.inodes.push(Inode::default());
            world.inodes.len() - 1
        };
        self.change_names(Op::Create, name, NameChange::Create(name.to_owned(), inode))?;
        Ok(Box::new(SimFile {
            disk: self.clone(),
            inode,
        }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let inode = self.world().live.get(name).copied();
        let inode = inode.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Box::new(SimFile {
            disk: self.clone(),
            inode,
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let change = NameChange::Rename(from.to_owned(), to.to_owned());
        self.change_names(Op::Rename, to, change)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.change_names(Op::Remove, name, NameChange::Remove(name.to_owned()))
    }

    fn sync_dir(&self) -> io::Result<()> {
        let (mut world, last) = self.count(Op::SyncDir, "")?;
        if !last {
            world.durable = world.live.clone();
            world.pending.clear();
        }
        finish(last)
    }
}

impl SimFile {
    fn name(&self) -> String {
        let world = self.disk.world();
        let found = world.live.iter().find(|(_, inode)| **inode == self.inode);
        found.map_or_else(String::new, |(name, _)| name.clone())
    }

    fn change(&self, op: Op, change: impl FnOnce(&Inode) -> Option<Change>) -> io::Result<()> {
        let (mut world, last) = self.disk.count(op, &self.name())?;
        let inode = &mut world.inodes[self.inode];
        if let Some(change) = change(inode) {
            inode.change(change);
        }
        finish(last)
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.world().inodes[self.inode].live.len() as u64)
    }

    /// Short on purpose: the caller must cope.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let world = self.disk.world();
        let content = &world.inodes[self.inode].live;
        let start = usize::try_from(offset).unwrap().min(content.len());
        let len = buf.len().min(content.len() - start).min(100_000);
        buf[..len].copy_from_slice(&content[start..start + len]);
        Ok(len)
    }

    fn write_all_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        self.change(Op::Write, |_| {
            Some(Change::Write {
                offset,
                bytes: buf.to_vec(),
            })
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).unwrap();
        self.change(Op::SetLen, |_| Some(Change::Len(len)))
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).unwrap();
        self.change(Op::Allocate, |inode| {
            (inode.live.len() < len).then_some(Change::Len(len))
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        let (mut world, last) = self.disk.count(Op::SyncData, &self.name())?;
        let index = world.ops.len() - 1;
        let loses = world.fault == Some((index, Fault::SyncLoses));
        let inode = &mut world.inodes[self.inode];
        if loses {
            inode.pending.clear();
            return Err(io::Error::other("the device failed"));
        }
        if !last {
            // Only what is pending: bytes that an earlier failed sync lost stay lost.
            for change in std::mem::take(&mut inode.pending) {
                change.apply(&mut inode.durable);
            }
        }
        finish(last)
    }
}
