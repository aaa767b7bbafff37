//! How many calls of the long kinds run at once.

use std::sync::Arc;

use highwater_proto::status::not_executed;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Code, Status};

use crate::options::ServeOptions;

/// Places for calls that hold something for as long as they run.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    commit_streams: Arc<Semaphore>,
    scans: Arc<Semaphore>,
    watches: Arc<Semaphore>,
}

/// A place, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Admission {
    /// As many places as the options say.
    pub(crate) fn new(options: &ServeOptions) -> Self {
        Self {
            commit_streams: Arc::new(Semaphore::new(options.commit_streams_max)),
            scans: Arc::new(Semaphore::new(options.scans_max)),
            watches: Arc::new(Semaphore::new(options.watches_max)),
        }
    }

    /// A place for a commit stream.
    pub(crate) fn commit_stream(&self) -> Result<Place, Status> {
        place(
            &self.commit_streams,
            "too many commit streams are open; try again later",
        )
    }

    /// A place for a scan or a take-over.
    pub(crate) fn scan(&self) -> Result<Place, Status> {
        place(&self.scans, "too many scans are running; try again later")
    }

    /// A place for a watch.
    pub(crate) fn watch(&self) -> Result<Place, Status> {
        place(&self.watches, "too many watches are open; try again later")
    }
}

fn place(places: &Arc<Semaphore>, refusal: &str) -> Result<Place, Status> {
    let permit = Arc::clone(places).try_acquire_owned();
    permit
        .map(Place)
        .map_err(|_| not_executed(Code::ResourceExhausted, refusal))
}
