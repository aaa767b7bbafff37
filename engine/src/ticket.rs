//! The promise of an answer, and the answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use highwater_core::{Domain, Receipt};
use parking_lot::Mutex;

use crate::error::Error;
use crate::wait::block_on;

/// What an accepted request gets.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The commit is durable.
    Committed(Box<Receipt>),
    /// The domain exists.
    Created(Arc<Domain>),
    /// What the lease clock shows is noted.
    Noted,
}

/// What a request gets.
pub(crate) type Answer = Result<Outcome, Error>;

#[derive(Debug, Default)]
enum Cell {
    #[default]
    Empty,
    Waiting(Waker),
    Done(Answer),
    Taken,
}

/// The side that answers. Dropped without an answer, it says that the outcome is unknown.
#[derive(Debug)]
pub(crate) struct Promise(Option<Arc<Mutex<Cell>>>);

/// The side that waits.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<Mutex<Cell>>);

/// A promise and what waits for it.
pub(crate) fn promise() -> (Promise, Waiting) {
    let cell = Arc::new(Mutex::new(Cell::Empty));
    (Promise(Some(Arc::clone(&cell))), Waiting(cell))
}

impl Promise {
    /// Gives the answer and wakes who waits for it.
    pub(crate) fn answer(self, answer: Answer) {
        if let Some(waker) = self.settle(answer) {
            waker.wake();
        }
    }

    /// Gives the answer, and returns what wakes who waits for it. Who waits for many answers is
    /// best woken when all of them are there.
    pub(crate) fn settle(mut self, answer: Answer) -> Option<Waker> {
        self.complete(answer)
    }

    fn complete(&mut self, answer: Answer) -> Option<Waker> {
        let cell = self.0.take()?;
        match std::mem::replace(&mut *cell.lock(), Cell::Done(answer)) {
            Cell::Waiting(waker) => Some(waker),
            Cell::Empty | Cell::Done(_) | Cell::Taken => None,
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if let Some(waker) = self.complete(Err(Error::Indeterminate)) {
            waker.wake();
        }
    }
}

impl Future for Waiting {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let mut cell = self.0.lock();
        match std::mem::replace(&mut *cell, Cell::Taken) {
            Cell::Done(answer) => Poll::Ready(answer),
            Cell::Taken => Poll::Ready(Err(Error::Indeterminate)),
            Cell::Empty | Cell::Waiting(_) => {
                *cell = Cell::Waiting(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// A commit that was submitted. It resolves once the verdict and the state that it was judged on
/// are durable. Dropping it doesn't take the commit back: the outcome is then unknown to the
/// caller.
#[derive(Debug)]
#[must_use = "a commit whose ticket is dropped has an unknown outcome"]
pub struct Ticket(pub(crate) Waiting);

impl Ticket {
    /// Blocks the thread until the outcome is known.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] with the reason, [`Error::Indeterminate`] if storage failed meanwhile.
    pub fn wait(self) -> Result<Receipt, Error> {
        block_on(self)
    }
}

impl Future for Ticket {
    type Output = Result<Receipt, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0)
            .poll(context)
            .map(|answer| match answer? {
                Outcome::Committed(receipt) => Ok(*receipt),
                Outcome::Created(_) | Outcome::Noted => Err(Error::Indeterminate),
            })
    }
}
