//! Watches: changes as they become durable, and where the watch stands in between.

use highwater::{Watch, WatchChange, WatchEvent};
use highwater_proto::convert::{ToWire, record_to_wire};
use highwater_proto::v1;
use highwater_proto::v1::{watch_change, watch_response};
use prost::Message;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::Status;

use crate::options::{COMMON_MESSAGE_BYTES, PAGE_OVERHEAD_BYTES};
use crate::shutdown::Ending;
use crate::status;
use crate::stream::shutting_down;

/// A part of a commit ends before it has so many bytes, unless one change alone is larger.
const PART_BYTES: usize = COMMON_MESSAGE_BYTES - PAGE_OVERHEAD_BYTES;
/// What one change adds to a part beside its own encoding: its tag and its length.
const CHANGE_FRAMING_BYTES: usize = 8;

type Answer = Result<v1::WatchResponse, Status>;

/// Sends what the watch gives, and its position when there is nothing for a while. It takes the
/// next commit from the store only when there is room for it, so that a slow reader costs no
/// memory: it falls behind, and is told so.
pub(crate) async fn send_changes(
    mut watch: Watch,
    answers: mpsc::Sender<Answer>,
    mut ending: Ending,
    progress: Duration,
) {
    let end = loop {
        let event = tokio::select! {
            biased;
            () = ending.begun() => break shutting_down(),
            () = answers.closed() => return,
            event = when_there_is_room(&mut watch, &answers, progress) => event,
        };
        let sent = match event {
            Ok(Some(event)) => send_event(event, &answers).await,
            Ok(None) => {
                let revision = watch.revision().get();
                send(
                    watch_response::Kind::Progress(v1::Progress { revision }),
                    &answers,
                )
                .await
            }
            Err(status) => break status,
        };
        if sent.is_none() {
            return;
        }
    };
    // Nobody is left to hear it if this fails.
    let _ = answers.send(Err(end)).await;
}

/// The next commit; `None` if there was none for a while.
async fn when_there_is_room(
    watch: &mut Watch,
    answers: &mpsc::Sender<Answer>,
    progress: Duration,
) -> Result<Option<WatchEvent>, Status> {
    // Without a listener the caller ends by itself.
    let _room = answers.reserve().await;
    match timeout(progress, watch.next()).await {
        Ok(event) => event.map(Some).map_err(status::of),
        Err(_) => Ok(None),
    }
}

async fn send(kind: watch_response::Kind, answers: &mpsc::Sender<Answer>) -> Option<()> {
    answers
        .send(Ok(v1::WatchResponse { kind: Some(kind) }))
        .await
        .ok()
}

/// Sends a commit, in parts where it is large.
async fn send_event(event: WatchEvent, answers: &mpsc::Sender<Answer>) -> Option<()> {
    let revision = event.revision.get();
    let part = |changes, more| {
        watch_response::Kind::Event(v1::WatchEvent {
            revision,
            changes,
            more,
        })
    };
    let mut changes = Vec::with_capacity(event.changes.len());
    let mut bytes = 0_usize;
    for change in event.changes {
        let change = to_wire(&change);
        let more = change.encoded_len().saturating_add(CHANGE_FRAMING_BYTES);
        if !changes.is_empty() && bytes.saturating_add(more) > PART_BYTES {
            send(part(std::mem::take(&mut changes), true), answers).await?;
            bytes = 0;
        }
        bytes = bytes.saturating_add(more);
        changes.push(change);
    }
    send(part(changes, false), answers).await
}

fn to_wire(change: &WatchChange) -> v1::WatchChange {
    let kind = match change {
        WatchChange::Put { key, record } => watch_change::Kind::Put(record_to_wire(key, record)),
        WatchChange::Metadata { key, record } => {
            watch_change::Kind::Metadata(record_to_wire(key, record))
        }
        WatchChange::Deleted { key } => watch_change::Kind::Deleted(key.to_wire()),
        WatchChange::Fenced { guard, fence } => watch_change::Kind::Fenced(v1::GuardFence {
            guard: guard.to_wire(),
            fence: Some(fence.to_wire()),
        }),
        WatchChange::Leased { guard, record } => watch_change::Kind::Leased(v1::GuardLease {
            guard: guard.to_wire(),
            record: Some(record.to_wire()),
        }),
    };
    v1::WatchChange { kind: Some(kind) }
}
