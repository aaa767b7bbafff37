//! Watches: commits as they become durable, whole and in order.

use highwater_core::{Fence, Guard, Key, LeaseRecord, Malformed, Record, Revision};
use highwater_proto::convert::{FromWire, parts, required};
use highwater_proto::v1;
use highwater_proto::v1::{watch_change, watch_response};
use tonic::{Status, Streaming};

use crate::error::ClientError;

/// One change of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchChange {
    /// A value was written.
    Put(Key, Record),
    /// Metadata was replaced; the value is as before.
    Metadata(Key, Record),
    /// The key was deleted.
    Deleted(Key),
    /// A fence was raised.
    Fenced(Guard, Fence),
    /// A lease was granted, renewed or ended.
    Leased(Guard, Box<LeaseRecord>),
}

/// What a watch tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchUpdate {
    /// A commit that changed something watched.
    Commit {
        /// Its revision.
        revision: Revision,
        /// Its changes, filtered to what is watched.
        changes: Vec<WatchChange>,
    },
    /// Nothing more happened up to this revision.
    Progress(Revision),
}

impl FromWire<v1::WatchChange> for WatchChange {
    fn from_wire(wire: v1::WatchChange) -> Result<Self, Malformed> {
        match wire.kind.ok_or(Malformed::Missing { what: parts::WATCH })? {
            watch_change::Kind::Put(record) => {
                let (key, record) = FromWire::from_wire(record)?;
                Ok(Self::Put(key, record))
            }
            watch_change::Kind::Metadata(record) => {
                let (key, record) = FromWire::from_wire(record)?;
                Ok(Self::Metadata(key, record))
            }
            watch_change::Kind::Deleted(key) => Ok(Self::Deleted(Key::from_wire(key)?)),
            watch_change::Kind::Fenced(fenced) => {
                let guard = Guard::from_wire(fenced.guard)?;
                Ok(Self::Fenced(guard, required(fenced.fence, parts::FENCE)?))
            }
            watch_change::Kind::Leased(leased) => {
                let guard = Guard::from_wire(leased.guard)?;
                let record = required(leased.record, parts::RECORD)?;
                Ok(Self::Leased(guard, Box::new(record)))
            }
        }
    }
}

/// A watch under way.
#[derive(Debug)]
pub struct Watch {
    answers: Streaming<v1::WatchResponse>,
    parts: Vec<WatchChange>,
    seen: Option<Revision>,
}

impl Watch {
    pub(crate) const fn new(
        answers: Streaming<v1::WatchResponse>,
        after: Option<Revision>,
    ) -> Self {
        Self {
            answers,
            parts: Vec::new(),
            seen: after,
        }
    }

    /// The revision up to which everything was told: where a new watch can begin after this one
    /// broke, without a gap and without a repeat. `None` before anything was told.
    #[must_use]
    pub const fn seen(&self) -> Option<Revision> {
        self.seen
    }

    /// Waits for the next commit or the next progress. A commit is told whole or not at all.
    ///
    /// # Errors
    ///
    /// [`ClientError::WatchTooOld`] when it fell behind, [`ClientError::ReadFailed`] or
    /// [`ClientError::NotSent`] when the call broke or the server ends.
    pub async fn next(&mut self) -> Result<WatchUpdate, ClientError> {
        loop {
            let answer = self.answers.message().await.map_err(ClientError::of_read)?;
            let answer = answer.ok_or_else(|| {
                ClientError::ReadFailed(Box::new(Status::unavailable("the watch ended")))
            })?;
            match answer
                .kind
                .ok_or(Malformed::Missing { what: parts::WATCH })?
            {
                watch_response::Kind::Progress(progress) => {
                    let revision = Revision::from_wire(progress.revision)?;
                    self.seen = Some(revision);
                    return Ok(WatchUpdate::Progress(revision));
                }
                watch_response::Kind::Event(event) => {
                    let revision = Revision::from_wire(event.revision)?;
                    for change in event.changes {
                        self.parts.push(WatchChange::from_wire(change)?);
                    }
                    if !event.more {
                        self.seen = Some(revision);
                        let changes = std::mem::take(&mut self.parts);
                        return Ok(WatchUpdate::Commit { revision, changes });
                    }
                }
            }
        }
    }
}
