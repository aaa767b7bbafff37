//! The service threads of a store. A thread that panics poisons the store: it never goes on with
//! half-applied state.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use highwater_wal::LogError;

use crate::checkpoint::Checkpointer;
use crate::shared::Shared;

/// How often room is looked for again while requests wait for it.
const BLOCKED_POLL: Duration = Duration::from_millis(20);
/// How often old snapshots are ended, and space is looked for on a full disk.
const HOUSEKEEPING: Duration = Duration::from_millis(500);

/// Poisons the store if the thread panics while this is alive.
pub(crate) struct PanicGuard<'a>(pub(crate) &'a Shared);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.latch.poison();
        }
    }
}

/// Starts every service thread.
///
/// # Errors
///
/// What the operating system says when it can't start one; those already started end by themselves
/// once `shared` is stopping.
pub(crate) fn start(
    shared: &Arc<Shared>,
    checkpointer: Checkpointer,
) -> io::Result<Vec<JoinHandle<()>>> {
    let spawn = |name: &str, body: Box<dyn FnOnce(&Shared) + Send>| {
        let shared = Arc::clone(shared);
        Builder::new()
            .name(format!("highwater-{name}"))
            .spawn(move || {
                let _guard = PanicGuard(&shared);
                body(&shared);
            })
    };
    Ok(vec![
        spawn("judge", Box::new(judge))?,
        spawn("log", Box::new(sync))?,
        spawn("spare", Box::new(keep_house))?,
        spawn("checkpoint", Box::new(move |_: &Shared| checkpointer.run()))?,
    ])
}

/// Judges for those who don't do it themselves.
fn judge(shared: &Shared) {
    shared.judge_signal.attach();
    let mut blocked = false;
    while !shared.is_stopping() {
        shared.judge_signal.wait(blocked.then_some(BLOCKED_POLL));
        blocked = shared.drive();
    }
}

/// Makes groups durable while there are any.
fn sync(shared: &Shared) {
    shared.log_signal.attach();
    while !shared.is_stopping() {
        shared.log_signal.wait(None);
        shared.sync_groups(usize::MAX);
    }
}

/// Keeps spare log segments ready, and ends snapshots that are held too long.
fn keep_house(shared: &Shared) {
    shared.spare_signal.attach();
    while !shared.is_stopping() {
        shared.spare_signal.wait(Some(HOUSEKEEPING));
        shared.snapshots.expire();
        if shared.latch.is_poisoned() || shared.is_stopping() {
            continue;
        }
        make_room(shared);
        if shared.blocked.load(Ordering::SeqCst) {
            shared.judge_signal.raise();
        }
    }
}

/// Makes the spare segments that are missing, and says what is in the way.
fn make_room(shared: &Shared) {
    let latch = &shared.latch;
    match shared.pool.ensure_spare() {
        Ok(()) => {
            let lacked = latch.set_no_descriptor(false);
            if latch.set_log_full(false) || lacked {
                tracing::info!("there is room for the log again");
            }
        }
        Err(LogError::Full { file, source }) => {
            latch.set_no_descriptor(false);
            if latch.set_log_full(true) {
                tracing::warn!(%file, %source, "no room for the log: no more data is taken");
            }
        }
        Err(LogError::NoDescriptor { file, source }) => {
            if latch.set_no_descriptor(true) {
                tracing::warn!(%file, %source, "too many files are open: once the log's segments \
                    are full, everything is refused as overloaded until some are closed");
            }
        }
        Err(error) => shared.poison(&error),
    }
}
