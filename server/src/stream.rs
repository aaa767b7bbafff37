//! The commands of a commit stream: read, handed to the store in order, and queued for their
//! verdicts.

use highwater::{Error, Store};
use highwater_core::{Commit, Identity, Malformed, Reason};
use highwater_proto::convert::{parts, required};
use highwater_proto::status::not_executed;
use highwater_proto::v1;
use tokio::sync::mpsc;
use tonic::{Code, Status, Streaming};

use crate::admission::Place;
use crate::shutdown::Ending;
use crate::status;
use crate::unread;
use crate::verdicts::{Pending, Verdicts};

/// The side of a commit stream that reads.
pub(crate) struct Commands {
    /// Where commits go.
    pub(crate) store: Store,
    /// Who calls.
    pub(crate) caller: Option<Identity>,
    /// Hears of the end of the server.
    pub(crate) ending: Ending,
}

impl Commands {
    /// Begins to read commands; at most `window` of them wait for their verdicts, and behind that
    /// the client is held back by the transport's flow control.
    pub(crate) fn begin(
        self,
        inbound: Streaming<v1::CommitStreamRequest>,
        window: usize,
        place: Place,
    ) -> Verdicts {
        let (sender, receiver) = mpsc::channel(window);
        tokio::spawn(self.run(inbound, sender));
        Verdicts::new(receiver, place)
    }

    async fn run(
        mut self,
        mut inbound: Streaming<v1::CommitStreamRequest>,
        verdicts: mpsc::Sender<Pending>,
    ) {
        let end = loop {
            let message = tokio::select! {
                message = inbound.message() => message,
                () = self.ending.begun() => break Some(not_executed(
                    Code::Unavailable,
                    "shutting down; commands without a verdict were not executed",
                )),
                () = verdicts.closed() => break None,
            };
            let commits = match message {
                Ok(Some(message)) => message.commits,
                Ok(None) => break None,
                // A refusal of the codec has its word already.
                Err(status) if status.details().is_empty() => {
                    break Some(unread::refusal(&status));
                }
                Err(status) => break Some(status),
            };
            for streamed in commits {
                if self.hand_over(streamed, &verdicts).await.is_none() {
                    return;
                }
            }
        };
        if let Some(status) = end {
            // Nobody is left to hear it if this fails.
            let _ = verdicts.send(Pending::End(status)).await;
        }
    }

    /// Hands one command to the store; `None` when nobody waits for verdicts any more.
    async fn hand_over(
        &self,
        streamed: v1::StreamedCommit,
        verdicts: &mpsc::Sender<Pending>,
    ) -> Option<()> {
        let room = verdicts.reserve().await.ok()?;
        let id = streamed.id;
        room.send(match self.read(streamed.commit) {
            Err(malformed) => Pending::Judged {
                id,
                result: Err(self.refuse(malformed)),
            },
            Ok(commit) => match self.store.submit_async(commit).await {
                Ok(ticket) => Pending::Submitted { id, ticket },
                Err(error) => Pending::Judged {
                    id,
                    result: Err(error),
                },
            },
        });
        Some(())
    }

    fn read(&self, commit: Option<v1::Commit>) -> Result<Commit, Malformed> {
        let mut commit: Commit = required(commit, parts::COMMIT)?;
        commit.caller.clone_from(&self.caller);
        Ok(commit)
    }

    fn refuse(&self, malformed: Malformed) -> Error {
        let reason = Reason::Malformed(malformed);
        Error::Rejected(status::refused(reason, &self.store.status()))
    }
}

/// What ends a call that has no end of its own.
pub(crate) fn shutting_down() -> Status {
    not_executed(Code::Unavailable, "shutting down")
}
