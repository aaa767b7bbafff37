//! What a power cut leaves: the operations of a disk, replayed up to any of them, and the images
//! that the medium may then hold.
//!
//! Names change in order, as the journal of a file system keeps them; contents don't: of what isn't
//! synced, any writes, and any sectors of them, may be there.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::chance::Chance;
use crate::disk::Files;

/// What a medium writes as a whole, in bytes.
const SECTOR_BYTES: usize = 512;

/// One operation that was done. Files are numbered in the order of their creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A name for a new file.
    Create(String, usize),
    /// Another name for a file.
    Rename(String, String),
    /// A name less.
    Remove(String),
    /// All names are durable.
    SyncDir,
    /// Whether they are isn't known.
    SyncDirFailed,
    /// Bytes at an offset.
    Write(usize, u64, Arc<[u8]>),
    /// A length.
    Len(usize, u64),
    /// The file's content is durable.
    Sync(usize),
    /// Whether it is isn't known, and no later sync will say.
    SyncFailed(usize),
    /// Something outside the disk.
    Mark(u64),
}

/// What a cut leaves of the changes that weren't durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Nothing.
    AllLost,
    /// Everything.
    AllKept,
    /// Everything, but of the last write to each file only the beginning.
    Torn(u64),
    /// Any of the writes, and any number of the changes of names.
    Writes(u64),
    /// Any sectors of the writes, and any number of the changes of names.
    Sectors(u64),
}

impl Cut {
    /// One of each kind.
    #[must_use]
    pub const fn each(seed: u64) -> [Self; 5] {
        [
            Self::AllLost,
            Self::AllKept,
            Self::Torn(seed),
            Self::Writes(seed),
            Self::Sectors(seed),
        ]
    }

    const fn seed(self) -> u64 {
        match self {
            Self::AllLost | Self::AllKept => 0,
            Self::Torn(seed) | Self::Writes(seed) | Self::Sectors(seed) => seed,
        }
    }
}

type Names = BTreeMap<String, usize>;

#[derive(Clone, Debug)]
enum Change {
    Write(u64, Arc<[u8]>),
    Len(u64),
}

#[derive(Clone, Debug, Default)]
struct Content {
    durable: Vec<u8>,
    /// What a failed sync left open.
    doubtful: Vec<Change>,
    pending: Vec<Change>,
}

/// A disk's beginning, and what was done to it.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    names: Names,
    contents: Vec<Content>,
    events: Vec<Event>,
}

impl Trace {
    /// A trace that begins with these files; `names` says which number each has, of so many.
    pub(crate) fn begin(files: &Files, names: Names, numbers: usize) -> Self {
        let mut contents = vec![Content::default(); numbers];
        for (name, number) in &names {
            if let (Some(content), Some(bytes)) = (contents.get_mut(*number), files.get(name)) {
                content.durable.clone_from(bytes);
            }
        }
        Self {
            names,
            contents,
            events: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    /// What was done.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The same without some of the operations, as a device that lies about them would have it.
    #[must_use]
    pub fn without(&self, lie: impl Fn(&Event) -> bool) -> Self {
        let mut trace = self.clone();
        trace.events.retain(|event| !lie(event));
        trace
    }

    /// Begins a replay.
    #[must_use]
    pub fn replay(&self) -> Cursor<'_> {
        Cursor {
            rest: &self.events,
            names: self.names.clone(),
            pending: Vec::new(),
            contents: self.contents.clone(),
        }
    }

    /// The image after the first `count` operations.
    #[must_use]
    pub fn image(&self, count: usize, cut: Cut) -> Files {
        let mut cursor = self.replay();
        for _ in 0..count {
            cursor.step();
        }
        cursor.image(cut)
    }
}

/// A replay that has come to some operation.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: &'a [Event],
    names: Names,
    pending: Vec<&'a Event>,
    contents: Vec<Content>,
}

impl<'a> Cursor<'a> {
    /// Does the next operation; `None` at the end.
    pub fn step(&mut self) -> Option<&'a Event> {
        let (event, rest) = self.rest.split_first()?;
        self.rest = rest;
        match event {
            Event::Create(_, number) => {
                let length = self.contents.len().max(number + 1);
                self.contents.resize(length, Content::default());
                self.pending.push(event);
            }
            Event::Rename(..) | Event::Remove(_) => self.pending.push(event),
            Event::SyncDir => {
                for change in std::mem::take(&mut self.pending) {
                    rename(&mut self.names, change);
                }
            }
            Event::Write(number, offset, bytes) => {
                self.change(*number, Change::Write(*offset, Arc::clone(bytes)));
            }
            Event::Len(number, len) => self.change(*number, Change::Len(*len)),
            Event::Sync(number) => {
                if let Some(content) = self.contents.get_mut(*number) {
                    content.sync();
                }
            }
            Event::SyncFailed(number) => {
                if let Some(content) = self.contents.get_mut(*number) {
                    content.doubtful.append(&mut content.pending);
                }
            }
            Event::SyncDirFailed | Event::Mark(_) => {}
        }
        Some(event)
    }

    fn change(&mut self, number: usize, change: Change) {
        if let Some(content) = self.contents.get_mut(number) {
            content.pending.push(change);
        }
    }

    /// What the medium may hold if the power goes now.
    #[must_use]
    pub fn image(&self, cut: Cut) -> Files {
        let mut chance = Chance::new(cut.seed());
        let kept = match cut {
            Cut::AllLost => 0,
            Cut::AllKept | Cut::Torn(_) => self.pending.len(),
            Cut::Writes(_) | Cut::Sectors(_) => chance.below(self.pending.len() + 1),
        };
        let mut names = self.names.clone();
        for change in self.pending.iter().take(kept) {
            rename(&mut names, change);
        }
        let mut image = Files::new();
        for (name, number) in names {
            let content = self.contents.get(number);
            let bytes = content.map_or_else(Vec::new, |c| c.after(cut, &mut chance));
            image.insert(name, bytes);
        }
        image
    }
}

fn rename(names: &mut Names, change: &Event) {
    match change {
        Event::Create(name, number) => {
            names.insert(name.clone(), *number);
        }
        Event::Rename(from, to) => {
            if let Some(number) = names.remove(from) {
                names.insert(to.clone(), number);
            }
        }
        Event::Remove(name) => {
            names.remove(name);
        }
        _ => {}
    }
}

impl Content {
    /// What a failed sync lost stays lost.
    fn sync(&mut self) {
        self.doubtful.clear();
        for change in std::mem::take(&mut self.pending) {
            change.apply(&mut self.durable);
        }
    }

    fn after(&self, cut: Cut, chance: &mut Chance) -> Vec<u8> {
        let mut content = self.durable.clone();
        let changes = self.doubtful.iter().chain(&self.pending);
        let count = self.doubtful.len() + self.pending.len();
        for (index, change) in changes.enumerate() {
            match (cut, change) {
                (Cut::AllLost, _) => {}
                (Cut::Torn(_), Change::Write(offset, bytes)) if index + 1 == count => {
                    let kept = bytes.get(..chance.below(bytes.len())).unwrap_or(bytes);
                    write(&mut content, *offset, kept);
                }
                (Cut::AllKept | Cut::Torn(_), _) => change.apply(&mut content),
                (Cut::Sectors(_), Change::Write(offset, bytes)) => {
                    write_sectors(&mut content, *offset, bytes, chance);
                }
                (Cut::Writes(_) | Cut::Sectors(_), _) => {
                    if chance.one_in(2) {
                        change.apply(&mut content);
                    }
                }
            }
        }
        content
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write(offset, bytes) => write(content, *offset, bytes),
            Self::Len(len) => content.resize(usize::try_from(*len).unwrap_or(0), 0),
        }
    }
}

fn write(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let start = usize::try_from(offset).unwrap_or(0);
    let end = start + bytes.len();
    content.resize(content.len().max(end), 0);
    if let Some(place) = content.get_mut(start..end) {
        place.copy_from_slice(bytes);
    }
}

fn write_sectors(content: &mut Vec<u8>, offset: u64, bytes: &[u8], chance: &mut Chance) {
    let (mut at, mut rest) = (offset, bytes);
    while !rest.is_empty() {
        let inside = usize::try_from(at).unwrap_or(0) % SECTOR_BYTES;
        let (sector, behind) = rest.split_at(rest.len().min(SECTOR_BYTES - inside));
        if chance.one_in(2) {
            write(content, at, sector);
        }
        at += sector.len() as u64;
        rest = behind;
    }
}
