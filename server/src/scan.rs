//! Scans and take-overs: streams of pages of one revision.

use std::pin::Pin;
use std::task::{Context, Poll};

use highwater::TakenOver;
use highwater_core::Receipt;
use highwater_proto::convert::ToWire;
use highwater_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Status;

use crate::admission::Place;
use crate::pages::Pages;
use crate::service::found;
use crate::shutdown::Ending;
use crate::status;
use crate::stream::shutting_down;

/// Messages that are ready before the client asks for them.
const MESSAGES_AHEAD: usize = 1;

/// A stream of answers that a task of its own makes. When it is dropped, the task ends.
pub(crate) struct Answers<T> {
    receiver: mpsc::Receiver<Result<T, Status>>,
    _place: Place,
}

impl<T> Answers<T> {
    /// A stream, and where its answers go. The place is given back when the stream is dropped.
    pub(crate) fn new(place: Place) -> (mpsc::Sender<Result<T, Status>>, Self) {
        let (sender, receiver) = mpsc::channel(MESSAGES_AHEAD);
        (
            sender,
            Self {
                receiver,
                _place: place,
            },
        )
    }
}

impl<T> Stream for Answers<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(context)
    }
}

/// Reads the next page where blocking is allowed.
async fn read(mut pages: Pages) -> (Pages, Result<Option<v1::ScanResponse>, Status>) {
    let kept = pages.clone();
    let read = tokio::task::spawn_blocking(move || {
        let page = pages.read();
        (pages, page)
    });
    match read.await {
        Ok((pages, page)) => (pages, page.map_err(status::of)),
        Err(_) => (kept, Err(Status::internal("the read was given up"))),
    }
}

/// Sends the pages, each as `wrap` says, until there are no more, nobody listens, or the server
/// ends.
pub(crate) async fn send_pages<T>(
    mut pages: Pages,
    answers: mpsc::Sender<Result<T, Status>>,
    mut ending: Ending,
    wrap: impl Fn(v1::ScanResponse) -> T,
) {
    loop {
        let room = tokio::select! {
            room = answers.reserve() => room,
            () = ending.begun() => {
                // Nobody is left to hear it if this fails.
                let _ = answers.send(Err(shutting_down())).await;
                return;
            }
        };
        let Ok(room) = room else { return };
        let (rest, page) = read(pages).await;
        pages = rest;
        match page {
            Ok(None) => return,
            Ok(Some(page)) => room.send(Ok(wrap(page))),
            Err(status) => {
                room.send(Err(status));
                return;
            }
        }
    }
}

/// The first answers of a take-over, from what the store did in one step. What was found of intents
/// has an answer of its own, so that the first page keeps its size.
pub(crate) fn first_of_take_over(
    taken: TakenOver,
    acquired: Option<&Receipt>,
    pages: &mut Pages,
) -> Vec<v1::TakeOverResponse> {
    let page = pages.take(taken.page);
    let mut first = v1::TakeOverResponse {
        receipt: Some(taken.receipt.to_wire()),
        page: None,
        found: taken.found.iter().map(|one| found(one, true)).collect(),
        acquired: acquired.map(ToWire::to_wire),
    };
    if first.found.is_empty() {
        first.page = Some(page);
        return vec![first];
    }
    vec![first, later_of_take_over(page)]
}

/// A later answer of a take-over.
pub(crate) const fn later_of_take_over(page: v1::ScanResponse) -> v1::TakeOverResponse {
    v1::TakeOverResponse {
        receipt: None,
        page: Some(page),
        found: Vec::new(),
        acquired: None,
    }
}
