//! The two moments of a shutdown: begin to end, and cut off.

use tokio::sync::watch;

/// Where a server stands on its way to the end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Phase {
    /// It serves.
    Serving,
    /// It takes nothing new, answers what it took, and ends what has no end of its own.
    Ending,
    /// It closes every connection.
    CutOff,
}

/// Moves a server along.
#[derive(Debug)]
pub(crate) struct Shutdown(watch::Sender<Phase>);

/// Hears of it.
#[derive(Clone, Debug)]
pub(crate) struct Ending(watch::Receiver<Phase>);

impl Shutdown {
    /// A server that serves.
    pub(crate) fn new() -> (Self, Ending) {
        let (sender, receiver) = watch::channel(Phase::Serving);
        (Self(sender), Ending(receiver))
    }

    /// Begins to end.
    pub(crate) fn begin(&self) {
        self.0.send_replace(Phase::Ending);
    }

    /// Closes every connection that is still open.
    pub(crate) fn cut_off(&self) {
        self.0.send_replace(Phase::CutOff);
    }
}

impl Ending {
    /// Waits until the server begins to end, or is gone.
    pub(crate) async fn begun(&mut self) {
        self.reached(Phase::Ending).await;
    }

    /// Waits until connections are to be closed, or the server is gone.
    pub(crate) async fn cut_off(mut self) {
        self.reached(Phase::CutOff).await;
    }

    /// Whether the server has begun to end.
    pub(crate) fn is_begun(&self) -> bool {
        *self.0.borrow() >= Phase::Ending
    }

    async fn reached(&mut self, phase: Phase) {
        // An error means that the sender is gone, and the server with it.
        let _ = self.0.wait_for(|now| *now >= phase).await;
    }
}
