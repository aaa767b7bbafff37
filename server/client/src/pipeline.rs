//! A pipeline: commits in order over one call, verdicts in order behind them.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use highwater_core::{Commit, Malformed, Receipt, Rejection};
use highwater_proto::convert::{FromWire, ToWire, parts};
use highwater_proto::v1::highwater_client::HighwaterClient;
use highwater_proto::v1::streamed_verdict::Verdict;
use highwater_proto::{MESSAGE_BYTES_MAX, status, v1};
use prost::Message;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::Stream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use crate::error::{ClientError, NotSent};
use crate::holder::Passage;
use crate::session::Session;

/// Most commits of one message.
const MESSAGE_COMMITS_MAX: usize = 256;
/// A message ends once its commits have so many bytes. The largest commit still fits behind it.
const MESSAGE_BYTES_ENOUGH: usize = 256 << 10;
/// Bytes that a message needs beside its commits, and that a commit needs beside its encoding.
const FRAMING_BYTES: usize = 64;
/// Longest commit, in bytes.
const COMMIT_BYTES_MAX: usize =
    MESSAGE_BYTES_MAX - MESSAGE_BYTES_ENOUGH - MESSAGE_COMMITS_MAX * FRAMING_BYTES;

/// A commit on its way, with its place in the window.
struct Sent {
    commit: v1::StreamedCommit,
    place: OwnedSemaphorePermit,
}

/// The half of a pipeline that sends.
#[derive(Debug)]
pub struct Commits {
    session: Session,
    queue: mpsc::Sender<Sent>,
    passages: mpsc::Sender<Option<Passage>>,
    window: Arc<Semaphore>,
    sent: Arc<AtomicU64>,
}

/// The half of a pipeline that receives.
#[derive(Debug)]
pub struct Verdicts {
    session: Session,
    answers: Option<Streaming<v1::CommitStreamResponse>>,
    ready: std::vec::IntoIter<v1::StreamedVerdict>,
    /// Of each commit without a verdict, what a release of the lease waits for.
    passages: mpsc::Receiver<Option<Passage>>,
    window: Arc<Semaphore>,
    sent: Arc<AtomicU64>,
    next: u64,
    end: End,
}

/// How the call ended, for commits that have no verdict.
#[derive(Debug)]
enum End {
    /// It goes on, or ended without a status.
    Silent,
    /// With the server's word that commits without a verdict were not executed.
    NotExecuted(Box<Status>),
    /// With anything else.
    Broken(Box<Status>),
}

/// What became of one commit of a pipeline.
#[derive(Clone, Debug)]
pub struct PipelineVerdict {
    /// The number that [`Commits::send`] gave, from 0 on without a gap.
    pub id: u64,
    /// The receipt, or what [`Session::commit`] would have said.
    pub result: Result<Receipt, ClientError>,
}

/// The commits that are queued, as messages of as many as are ready.
struct Outgoing {
    queue: mpsc::Receiver<Sent>,
    held: Option<Sent>,
}

/// Begins a pipeline.
pub(crate) async fn pipeline(
    session: Session,
    mut rpc: HighwaterClient<Channel>,
    window: usize,
) -> Result<(Commits, Verdicts), ClientError> {
    let places = window.clamp(1, Semaphore::MAX_PERMITS);
    let (sender, receiver) = mpsc::channel(places);
    let (passing, passages) = mpsc::channel(places);
    let outgoing = Outgoing {
        queue: receiver,
        held: None,
    };
    let answers = rpc
        .commit_stream(outgoing)
        .await
        .map_err(ClientError::of_read)?;
    let (window, sent) = (
        Arc::new(Semaphore::new(places)),
        Arc::new(AtomicU64::new(0)),
    );
    let commits = Commits {
        session: session.clone(),
        queue: sender,
        passages: passing,
        window: Arc::clone(&window),
        sent: Arc::clone(&sent),
    };
    let verdicts = Verdicts {
        session,
        answers: Some(answers.into_inner()),
        ready: Vec::new().into_iter(),
        passages,
        window,
        sent,
        next: 0,
        end: End::Silent,
    };
    Ok((commits, verdicts))
}

impl Commits {
    /// Sends a draft under the session's authority, and returns its number. Waits while the window
    /// is full, that is, until verdicts are taken.
    ///
    /// # Errors
    ///
    /// Nothing was sent: [`ClientError::SessionStopped`], [`ClientError::NotHolder`], or
    /// [`ClientError::NotSent`] when it is too large or the pipeline has ended.
    pub async fn send(&mut self, draft: Commit) -> Result<u64, ClientError> {
        let passage = self.session.enter().await?;
        let commit = self.session.sealed(draft).to_wire();
        let (bytes, max) = (commit.encoded_len(), COMMIT_BYTES_MAX);
        if bytes > max {
            return Err(NotSent::TooLarge { bytes, max }.into());
        }
        let ended = |_| ClientError::from(NotSent::PipelineEnded);
        let place = Arc::clone(&self.window)
            .acquire_owned()
            .await
            .map_err(ended)?;
        // What was learnt while waiting counts too.
        self.session.check()?;
        let room = self
            .queue
            .reserve()
            .await
            .map_err(|_| NotSent::PipelineEnded)?;
        // As many fit as the window has places.
        self.passages
            .try_send(passage)
            .map_err(|_| NotSent::PipelineEnded)?;
        let id = self.sent.fetch_add(1, Ordering::AcqRel);
        room.send(Sent {
            commit: v1::StreamedCommit {
                id,
                commit: Some(commit),
            },
            place,
        });
        Ok(id)
    }

    /// Ends the pipeline: what was sent is still judged, and [`Verdicts::next`] then gives `None`.
    pub fn finish(self) {}
}

impl Verdicts {
    /// The next verdict, in the order of the commits; `None` behind the last. When the call breaks,
    /// every commit without a verdict still gets its answer here: not sent where the server says
    /// so, else with an unknown outcome.
    pub async fn next(&mut self) -> Option<PipelineVerdict> {
        loop {
            if let Some(verdict) = self.ready.next() {
                return Some(self.verdict(verdict));
            }
            let Some(answers) = &mut self.answers else {
                return self.without_verdict();
            };
            match answers.message().await {
                Ok(Some(message)) => self.ready = message.verdicts.into_iter(),
                Ok(None) => self.ended(End::Silent),
                Err(status) if status::is_not_executed(&status) => {
                    self.ended(End::NotExecuted(Box::new(status)));
                }
                Err(status) => self.ended(End::Broken(Box::new(status))),
            }
        }
    }

    fn ended(&mut self, end: End) {
        self.answers = None;
        self.end = end;
        self.window.close();
    }

    fn verdict(&mut self, verdict: v1::StreamedVerdict) -> PipelineVerdict {
        self.next = self.next.saturating_add(1);
        drop(self.passages.try_recv());
        self.window.add_permits(1);
        let id = verdict.id;
        let result = match verdict.verdict {
            Some(Verdict::Receipt(receipt)) => {
                Receipt::from_wire(receipt).map_err(ClientError::Answer)
            }
            Some(Verdict::Rejection(rejection)) => Err(match Rejection::from_wire(rejection) {
                Ok(rejection) => ClientError::of_rejection(Box::new(rejection)),
                Err(malformed) => ClientError::Answer(malformed),
            }),
            Some(Verdict::Indeterminate(v1::Indeterminate {})) => {
                Err(ClientError::OutcomeUnknown { cause: None })
            }
            None => Err(ClientError::Answer(Malformed::Missing {
                what: parts::VERDICT,
            })),
        };
        PipelineVerdict {
            id,
            result: self.session.note(result),
        }
    }

    /// The answer to a commit that was sent and has no verdict.
    fn without_verdict(&mut self) -> Option<PipelineVerdict> {
        let id = self.next;
        if id >= self.sent.load(Ordering::Acquire) {
            return None;
        }
        self.next = self.next.saturating_add(1);
        drop(self.passages.try_recv());
        let error = match &self.end {
            End::Silent => ClientError::OutcomeUnknown { cause: None },
            End::NotExecuted(status) => NotSent::Refused(status.clone()).into(),
            End::Broken(status) => ClientError::OutcomeUnknown {
                cause: Some(status.clone()),
            },
        };
        Some(PipelineVerdict {
            id,
            result: Err(error),
        })
    }
}

impl Stream for Outgoing {
    type Item = v1::CommitStreamRequest;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let mut commits = Vec::new();
        let mut bytes = 0_usize;
        let is_ended = loop {
            let sent = match this.held.take() {
                Some(held) => held,
                None => match this.queue.poll_recv(context) {
                    Poll::Ready(Some(sent)) => sent,
                    Poll::Ready(None) => break true,
                    Poll::Pending => break false,
                },
            };
            let more = sent.commit.encoded_len().saturating_add(FRAMING_BYTES);
            if !commits.is_empty() && bytes.saturating_add(more) > MESSAGE_BYTES_ENOUGH {
                this.held = Some(sent);
                break false;
            }
            bytes = bytes.saturating_add(more);
            // Its place is free again when its verdict is taken.
            sent.place.forget();
            commits.push(sent.commit);
            if commits.len() >= MESSAGE_COMMITS_MAX || bytes >= MESSAGE_BYTES_ENOUGH {
                break false;
            }
        };
        if !commits.is_empty() {
            return Poll::Ready(Some(v1::CommitStreamRequest { commits }));
        }
        if is_ended {
            Poll::Ready(None)
        } else {
            Poll::Pending
        }
    }
}
