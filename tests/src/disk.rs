//! A disk in memory that counts what is done to it, fails where it is told to, has as much space
//! as it is given, and remembers every operation so that a power cut can be made at any of them.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use highwater::{Disk, DiskFile};

use crate::trace::{Event, Trace};

/// The unit in which space is taken, in bytes.
const BLOCK_BYTES: u64 = 4_096;
/// What a device says that failed.
const EIO: i32 = 5;
/// What a file system says that is full.
const ENOSPC: i32 = 28;

/// Names and contents of all files.
pub type Files = BTreeMap<String, Vec<u8>>;

/// What can be done to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// Creating a file.
    Create,
    /// Opening a file.
    Open,
    /// Renaming a file.
    Rename,
    /// Removing a file.
    Remove,
    /// Making names durable.
    SyncDir,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Setting a length.
    SetLen,
    /// Reserving space.
    Allocate,
    /// Making contents durable.
    SyncData,
}

/// The operations that change something, in the order in which tests go through them.
pub const CHANGING: [Op; 8] = [
    Op::Create,
    Op::Rename,
    Op::Remove,
    Op::SyncDir,
    Op::Write,
    Op::SetLen,
    Op::Allocate,
    Op::SyncData,
];

/// An error of the device, planted.
#[derive(Clone, Debug)]
pub struct Fault {
    /// At which kind of operation.
    pub op: Op,
    /// On files whose name begins so; empty for all.
    pub file: &'static str,
    /// At which of them, counted from 1 on when the fault is planted.
    pub nth: u64,
    /// Whether it goes on failing from there.
    pub sticky: bool,
}

#[derive(Debug)]
struct Planted {
    fault: Fault,
    seen: u64,
}

#[derive(Debug, Default)]
struct Inode {
    content: Vec<u8>,
    /// The blocks that have space.
    blocks: Vec<bool>,
    name: Option<String>,
}

#[derive(Debug, Default)]
struct World {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    trace: Option<Trace>,
    counts: BTreeMap<Op, u64>,
    faults: Vec<Planted>,
    budget: Option<u64>,
    failures: u64,
    held: bool,
    waiting: usize,
}

/// A handle on a simulated directory; clones share it.
#[derive(Clone, Debug, Default)]
pub struct SimDisk(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    world: Mutex<World>,
    changed: Condvar,
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: usize,
}

fn device_failed() -> io::Error {
    io::Error::from_raw_os_error(EIO)
}

fn to_usize(number: u64) -> io::Result<usize> {
    usize::try_from(number).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

impl SimDisk {
    /// A disk with these files, all durable.
    #[must_use]
    pub fn with_files(files: &Files) -> Self {
        let mut world = World::default();
        for (name, content) in files {
            world.names.insert(name.clone(), world.inodes.len());
            let blocks = content.len().div_ceil(BLOCK_BYTES as usize);
            world.inodes.push(Inode {
                content: content.clone(),
                blocks: vec![true; blocks],
                name: Some(name.clone()),
            });
        }
        let disk = Self::default();
        *disk.world() = world;
        disk
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers every operation from now on. What is there now counts as durable.
    pub fn record(&self) {
        let files = self.files();
        let mut world = self.world();
        let order = world
            .names
            .iter()
            .map(|(name, inode)| (name.clone(), *inode));
        let order = order.collect();
        let inodes = world.inodes.len();
        world.trace = Some(Trace::begin(&files, order, inodes));
    }

    /// Notes in the trace that something outside the disk has happened by now.
    pub fn mark(&self, number: u64) {
        self.world().log(|| Event::Mark(number));
    }

    /// Ends the recording and gives what was recorded.
    #[must_use]
    pub fn recorded(&self) -> Trace {
        self.world().trace.take().unwrap_or_default()
    }

    /// All files as a running process sees them.
    #[must_use]
    pub fn files(&self) -> Files {
        let world = self.world();
        let content = |inode: &usize| {
            let inode = world.inodes.get(*inode);
            inode.map_or_else(Vec::new, |inode| inode.content.clone())
        };
        let files = world.names.iter();
        files
            .map(|(name, inode)| (name.clone(), content(inode)))
            .collect()
    }

    /// Plants an error.
    pub fn plant(&self, fault: Fault) {
        self.world().faults.push(Planted { fault, seen: 0 });
    }

    /// Takes every planted error away.
    pub fn heal(&self) {
        self.world().faults.clear();
    }

    /// How many planted errors have struck.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.world().failures
    }

    /// How often this was done.
    #[must_use]
    pub fn count(&self, op: Op) -> u64 {
        self.world().counts.get(&op).copied().unwrap_or(0)
    }

    /// Lets syncs of the log wait from now on.
    pub fn hold(&self) {
        self.world().held = true;
    }

    /// Lets them go on.
    pub fn release(&self) {
        self.world().held = false;
        self.0.changed.notify_all();
    }

    /// Blocks until a sync waits.
    pub fn wait_for_sync(&self) {
        let waiting = self.0.changed.wait_while(self.world(), |w| w.waiting == 0);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits while syncs are held.
    fn pass(&self, name: &str) {
        if !name.starts_with("log-") {
            return;
        }
        let mut world = self.world();
        world.waiting += 1;
        self.0.changed.notify_all();
        let passed = self.0.changed.wait_while(world, |w| w.held);
        passed.unwrap_or_else(PoisonError::into_inner).waiting -= 1;
    }

    /// Gives the disk so many bytes in all; `None` is without end. It may be less than is taken.
    pub fn set_budget(&self, bytes: Option<u64>) {
        self.world().budget = bytes;
    }

    /// How many bytes are taken.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.world().used()
    }

    /// Counts an operation; an error if one is planted there.
    fn step(&self, op: Op, name: &str) -> io::Result<MutexGuard<'_, World>> {
        let mut world = self.world();
        *world.counts.entry(op).or_default() += 1;
        let mut strikes = false;
        for planted in &mut world.faults {
            if planted.fault.op == op && name.starts_with(planted.fault.file) {
                planted.seen += 1;
                strikes |= planted.seen == planted.fault.nth
                    || (planted.fault.sticky && planted.seen > planted.fault.nth);
            }
        }
        if strikes {
            world.failures += 1;
            if op == Op::SyncDir {
                world.log(|| Event::SyncDirFailed);
            }
            return Err(device_failed());
        }
        Ok(world)
    }

    fn file(&self, inode: usize) -> Box<dyn DiskFile> {
        let disk = self.clone();
        Box::new(SimFile { disk, inode })
    }
}

impl World {
    fn log(&mut self, event: impl FnOnce() -> Event) {
        if let Some(trace) = &mut self.trace {
            trace.push(event());
        }
    }

    /// What all linked files take.
    fn used(&self) -> u64 {
        let linked = self
            .names
            .values()
            .filter_map(|inode| self.inodes.get(*inode));
        linked.map(Inode::taken).sum()
    }

    /// Gives the blocks of a range of a file space, as far as there is some; how far that is.
    fn reserve(&mut self, inode: usize, from: u64, to: u64) -> io::Result<u64> {
        let mut free = match self.budget {
            Some(budget) => budget.saturating_sub(self.used()) / BLOCK_BYTES,
            None => u64::MAX,
        };
        let (first, last) = (from / BLOCK_BYTES, to.div_ceil(BLOCK_BYTES));
        let blocks = &mut self.inode(inode)?.blocks;
        blocks.resize(blocks.len().max(to_usize(last)?), false);
        let range = to_usize(first)?..to_usize(last)?;
        for (block, taken) in (first..).zip(blocks.get_mut(range).unwrap_or_default()) {
            if !*taken && free == 0 {
                return Ok((block * BLOCK_BYTES).max(from));
            }
            if !*taken {
                free -= 1;
                *taken = true;
            }
        }
        Ok(to)
    }

    fn inode(&mut self, inode: usize) -> io::Result<&mut Inode> {
        let inode = self.inodes.get_mut(inode);
        inode.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn write(&mut self, inode: usize, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let start = to_usize(offset)?;
        let content = &mut self.inode(inode)?.content;
        content.resize(content.len().max(start + bytes.len()), 0);
        if let Some(place) = content.get_mut(start..start + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.log(|| Event::Write(inode, offset, bytes.into()));
        Ok(())
    }

    fn set_len(&mut self, inode: usize, len: u64) -> io::Result<()> {
        let file = self.inode(inode)?;
        file.content.resize(to_usize(len)?, 0);
        file.blocks.truncate(to_usize(len.div_ceil(BLOCK_BYTES))?);
        self.log(|| Event::Len(inode, len));
        Ok(())
    }

    fn rename_inode(&mut self, inode: usize, name: Option<&str>) {
        if let Some(inode) = self.inodes.get_mut(inode) {
            inode.name = name.map(str::to_owned);
        }
    }
}

impl Inode {
    fn taken(&self) -> u64 {
        self.blocks.iter().filter(|taken| **taken).count() as u64 * BLOCK_BYTES
    }
}

impl Disk for SimDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.world().names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut world = self.step(Op::Create, name)?;
        if world.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = world.inodes.len();
        world.inodes.push(Inode::default());
        world.rename_inode(inode, Some(name));
        world.names.insert(name.to_owned(), inode);
        world.log(|| Event::Create(name.to_owned(), inode));
        drop(world);
        Ok(self.file(inode))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let world = self.step(Op::Open, name)?;
        let inode = world.names.get(name).copied();
        drop(world);
        inode
            .map(|inode| self.file(inode))
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut world = self.step(Op::Rename, from)?;
        let Some(inode) = world.names.remove(from) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        if let Some(replaced) = world.names.insert(to.to_owned(), inode) {
            world.rename_inode(replaced, None);
        }
        world.rename_inode(inode, Some(to));
        world.log(|| Event::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut world = self.step(Op::Remove, name)?;
        let Some(inode) = world.names.remove(name) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        world.rename_inode(inode, None);
        world.log(|| Event::Remove(name.to_owned()));
        Ok(())
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.step(Op::SyncDir, "")?.log(|| Event::SyncDir);
        Ok(())
    }
}

impl SimFile {
    /// The world, if no error is planted for this operation on this file.
    fn step(&self, op: Op) -> io::Result<MutexGuard<'_, World>> {
        self.disk.step(op, &self.name())
    }

    fn name(&self) -> String {
        let world = self.disk.world();
        let inode = world.inodes.get(self.inode);
        inode
            .and_then(|inode| inode.name.clone())
            .unwrap_or_default()
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.world().inode(self.inode)?.content.len() as u64)
    }

    /// Short on purpose: whoever reads must cope.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut world = self.step(Op::Read)?;
        let content = &world.inode(self.inode)?.content;
        let rest = content.get(to_usize(offset)?..).unwrap_or_default();
        let len = buf.len().min(rest.len()).min(100_000);
        if let (Some(to), Some(from)) = (buf.get_mut(..len), rest.get(..len)) {
            to.copy_from_slice(from);
        }
        Ok(len)
    }

    /// A write that fails has written the first half; one that finds no space, what had some.
    fn write_all_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        let written = |end: u64| -> io::Result<&[u8]> {
            Ok(buf
                .get(..to_usize(end.saturating_sub(offset))?)
                .unwrap_or(buf))
        };
        match self.step(Op::Write) {
            Ok(mut world) => {
                let end = offset + buf.len() as u64;
                let reached = world.reserve(self.inode, offset, end)?;
                world.write(self.inode, offset, written(reached)?)?;
                if reached < end {
                    return Err(io::Error::from_raw_os_error(ENOSPC));
                }
                Ok(())
            }
            Err(error) => {
                let half = written(offset + buf.len() as u64 / 2)?;
                self.disk.world().write(self.inode, offset, half)?;
                Err(error)
            }
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.step(Op::SetLen)?.set_len(self.inode, len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let mut world = self.step(Op::Allocate)?;
        let blocks = world.inode(self.inode)?.blocks.clone();
        if world.reserve(self.inode, 0, len)? < len {
            world.inode(self.inode)?.blocks = blocks;
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        if (world.inode(self.inode)?.content.len() as u64) < len {
            world.inode(self.inode)?.content.resize(to_usize(len)?, 0);
            let inode = self.inode;
            world.log(|| Event::Len(inode, len));
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let inode = self.inode;
        self.disk.pass(&self.name());
        match self.step(Op::SyncData) {
            Ok(mut world) => {
                world.log(|| Event::Sync(inode));
                Ok(())
            }
            Err(error) => {
                self.disk.world().log(|| Event::SyncFailed(inode));
                Err(error)
            }
        }
    }
}
