//! The answers of a commit stream: verdicts in the order of the commands, as many at once as are
//! ready.

use std::pin::Pin;
use std::task::{Context, Poll};

use highwater::{Error, Ticket};
use highwater_core::{Reason, Receipt, Rejection, Unavailable};
use highwater_proto::convert::ToWire;
use highwater_proto::v1::streamed_verdict::Verdict;
use highwater_proto::{status, v1};
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::{Code, Status};

use crate::admission::Place;

/// Most verdicts of one message.
const MESSAGE_VERDICTS_MAX: usize = 1_024;
/// A message ends once its verdicts have so many bytes. The largest receipt has less than 4 MiB, so
/// that it is the first of its message wherever it would make it too large.
const MESSAGE_BYTES_ENOUGH: usize = 128 << 10;

/// One command on its way to its verdict.
pub(crate) enum Pending {
    /// It was handed to the store.
    Submitted {
        /// The client's id of it.
        id: u64,
        /// What the store promised.
        ticket: Ticket,
    },
    /// It has its verdict already.
    Judged {
        /// The client's id of it.
        id: u64,
        /// What the store said.
        result: Result<Receipt, Error>,
    },
    /// There are no more, because of this.
    End(Status),
}

/// The stream of verdicts.
pub(crate) struct Verdicts {
    pending: mpsc::Receiver<Pending>,
    front: Option<Pending>,
    /// A verdict that didn't fit into the last message.
    held: Option<v1::StreamedVerdict>,
    end: Option<Status>,
    _place: Place,
}

impl Verdicts {
    /// The verdicts of these commands, in their order.
    pub(crate) const fn new(pending: mpsc::Receiver<Pending>, place: Place) -> Self {
        Self {
            pending,
            front: None,
            held: None,
            end: None,
            _place: place,
        }
    }

    /// The next verdict; `None` where there is none any more.
    fn poll_verdict(&mut self, context: &mut Context<'_>) -> Poll<Option<v1::StreamedVerdict>> {
        if let Some(held) = self.held.take() {
            return Poll::Ready(Some(held));
        }
        if self.end.is_some() {
            return Poll::Ready(None);
        }
        let front = match self.front.take() {
            Some(front) => front,
            None => match self.pending.poll_recv(context) {
                Poll::Ready(Some(front)) => front,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            },
        };
        let (id, result) = match front {
            Pending::Judged { id, result } => (id, result),
            Pending::Submitted { id, mut ticket } => match Pin::new(&mut ticket).poll(context) {
                Poll::Ready(result) => (id, result),
                Poll::Pending => {
                    self.front = Some(Pending::Submitted { id, ticket });
                    return Poll::Pending;
                }
            },
            Pending::End(status) => {
                self.end = Some(status);
                return Poll::Ready(None);
            }
        };
        match verdict(id, result) {
            Ok(verdict) => Poll::Ready(Some(verdict)),
            Err(status) => {
                // Nothing behind this command was executed either: the store is closed.
                self.pending.close();
                self.end = Some(status);
                Poll::Ready(None)
            }
        }
    }
}

/// The verdict on one command; an error where there is none and can't be for those behind it.
fn verdict(id: u64, result: Result<Receipt, Error>) -> Result<v1::StreamedVerdict, Status> {
    let verdict = match result {
        Ok(receipt) => Verdict::Receipt(receipt.to_wire()),
        Err(Error::Rejected(rejection)) => Verdict::Rejection(rejection.to_wire()),
        Err(Error::Closed) => {
            let message = "the store is closed; commands without a verdict were not executed";
            return Err(status::not_executed(Code::Unavailable, message));
        }
        // The wire has no reason of its own for it: as a budget that is full, it was not done, and
        // passes by itself. Commands behind it may have been done.
        Err(Error::AuditUnavailable { observed }) => {
            let reason = Reason::Unavailable(Unavailable::Overloaded);
            let observed = *observed;
            Verdict::Rejection(Rejection { reason, observed }.to_wire())
        }
        Err(
            Error::Indeterminate
            | Error::TooOld { .. }
            | Error::NotReached { .. }
            | Error::SnapshotExpired
            | Error::TooManySnapshots
            | Error::Storage(_),
        ) => Verdict::Indeterminate(v1::Indeterminate {}),
    };
    Ok(v1::StreamedVerdict {
        id,
        verdict: Some(verdict),
    })
}

impl Stream for Verdicts {
    type Item = Result<v1::CommitStreamResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let mut verdicts = Vec::new();
        let mut bytes = 0_usize;
        let is_ended = loop {
            match this.poll_verdict(context) {
                Poll::Pending => break false,
                Poll::Ready(None) => break true,
                Poll::Ready(Some(verdict)) => {
                    let more = verdict.encoded_len();
                    if !verdicts.is_empty() && bytes.saturating_add(more) > MESSAGE_BYTES_ENOUGH {
                        this.held = Some(verdict);
                        break false;
                    }
                    bytes = bytes.saturating_add(more);
                    verdicts.push(verdict);
                    if verdicts.len() >= MESSAGE_VERDICTS_MAX || bytes >= MESSAGE_BYTES_ENOUGH {
                        break false;
                    }
                }
            }
        };
        if !verdicts.is_empty() {
            return Poll::Ready(Some(Ok(v1::CommitStreamResponse { verdicts })));
        }
        match this.end.take() {
            Some(status) => {
                this.pending.close();
                Poll::Ready(Some(Err(status)))
            }
            None if is_ended => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}
