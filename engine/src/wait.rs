//! Waiting: a thread for a future, and a service thread for work.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    static WAKER: RefCell<Option<Waker>> = const { RefCell::new(None) };
}

fn this_thread() -> Waker {
    let make = || Waker::from(Arc::new(ThreadWaker(thread::current())));
    WAKER.with(|cached| cached.borrow_mut().get_or_insert_with(make).clone())
}

/// Blocks the thread until the future is done.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = this_thread();
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Blocks the thread until the future is done, or until the time is over.
pub(crate) fn block_on_for<F: Future>(future: F, limit: Duration) -> Option<F::Output> {
    let mut future = pin!(future);
    let waker = this_thread();
    let mut context = Context::from_waker(&waker);
    let start = Instant::now();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        let left = limit
            .checked_sub(start.elapsed())
            .filter(|left| !left.is_zero())?;
        thread::park_timeout(left);
    }
}

/// Wakes one service thread. A signal that comes while the thread works isn't lost.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    raised: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Signal {
    /// Makes the calling thread the one that is woken.
    pub(crate) fn attach(&self) {
        // Set once, by the thread itself at its start.
        let _ = self.thread.set(thread::current());
    }

    /// Wakes the thread, or lets its next wait return at once.
    pub(crate) fn raise(&self) {
        if !self.raised.swap(true, Ordering::SeqCst)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// Waits for a signal, at most for `limit` if there is one, and takes it.
    pub(crate) fn wait(&self, limit: Option<Duration>) {
        let start = Instant::now();
        while !self.raised.swap(false, Ordering::SeqCst) {
            match limit {
                None => thread::park(),
                Some(limit) => {
                    let left = limit.saturating_sub(start.elapsed());
                    if left.is_zero() {
                        return;
                    }
                    thread::park_timeout(left);
                }
            }
        }
    }
}
