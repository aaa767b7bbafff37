//! The service threads of a store. A thread that panics poisons the store: it never goes on with
//! half-applied state.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use highwater_wal::{Lacking, LogError};

use crate::audit;
use crate::checkpoint::Checkpointer;
use crate::leases;
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
            self.0.stop_writing();
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
    let spawn = |name: &str, mut body: Box<dyn FnMut(&Shared) + Send>| {
        let shared = Arc::clone(shared);
        Builder::new()
            .name(format!("highwater-{name}"))
            .spawn(move || serve(&shared, &mut body))
    };
    let mut checkpointer = Some(checkpointer);
    let checkpoint = move |_: &Shared| {
        if let Some(checkpointer) = checkpointer.take() {
            checkpointer.run();
        }
    };
    Ok(vec![
        spawn("judge", Box::new(judge))?,
        spawn("log", Box::new(sync))?,
        spawn("spare", Box::new(keep_house))?,
        spawn("leases", Box::new(leases::keep))?,
        spawn("audit", Box::new(audit::keep))?,
        spawn("checkpoint", Box::new(checkpoint))?,
    ])
}

/// Runs a thread's work. After a panic the store is poisoned, and the work is taken up once more:
/// on a poisoned store it is to tell those who wait, and nothing that the panic may have left half
/// done is ever written.
fn serve(shared: &Shared, body: &mut dyn FnMut(&Shared)) {
    let attempt = AssertUnwindSafe(|| {
        let _guard = PanicGuard(shared);
        body(shared);
    });
    if catch_unwind(attempt).is_err() {
        tracing::error!("a service thread panicked: no more writes are accepted until a reopen");
        body(shared);
    }
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
    let lacked = shared.pool.lacking();
    match shared.pool.ensure_spare() {
        Ok(()) => {
            if lacked.is_some() {
                tracing::info!("there is room for the log again");
            }
        }
        Err(LogError::Full { file, source }) => {
            if lacked != Some(Lacking::Space) {
                tracing::warn!(%file, %source, "no room for the log: no more data is taken");
            }
        }
        Err(LogError::NoDescriptor { file, source }) => {
            if lacked != Some(Lacking::Descriptor) {
                tracing::warn!(%file, %source, "too many files are open: once the log's segments \
                    are full, everything is refused as overloaded until some are closed");
            }
        }
        Err(error) => shared.poison(&error),
    }
}

#[cfg(test)]
mod tests {
    use highwater_core::{Commit, DomainName, Key, Policy, Reason, Unavailable};

    use super::*;
    use crate::error::Error;
    use crate::store::Store;
    use crate::wait::block_on_for;

    /// What isn't answered by now never will be.
    const FORGOTTEN: Duration = Duration::from_secs(60);

    #[test]
    fn a_panic_while_a_group_is_synced_leaves_nobody_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), crate::Config::default()).unwrap();
        let name = DomainName::new("jobs").unwrap();
        store
            .create_domain(name.clone(), Policy::default(), None)
            .unwrap();
        let mut runs = 0;
        std::thread::scope(|scope| {
            let run = || {
                serve(store.shared(), &mut |shared| {
                    runs += 1;
                    if runs == 1 {
                        shared.syncing.store(true, Ordering::SeqCst);
                        panic!("the work fails");
                    }
                });
            };
            scope.spawn(run).join().unwrap();
        });
        assert_eq!(runs, 2, "it is taken up once more");
        // The first may still be found by who was woken for the panic.
        for _ in 0..3 {
            let commit = Commit::new(name.clone()).delete(Key::new("k").unwrap());
            let answer = block_on_for(store.commit_async(commit), FORGOTTEN);
            let Some(Err(Error::Rejected(rejection))) = answer else {
                panic!("{answer:?}")
            };
            let poisoned = Reason::Unavailable(Unavailable::Poisoned);
            assert_eq!(rejection.reason, poisoned);
        }
    }
}
