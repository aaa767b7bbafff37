//! Waiting for a lease on behalf of a client.

use std::time::Duration;

use highwater::{Acquire, Error, Store};
use highwater_core::{Reason, Receipt};
use tokio::time::{Instant, timeout_at};
use tonic::Status;

use crate::shutdown::Ending;
use crate::status;
use crate::stream::shutting_down;

/// How much of a call's time is left for the last try and its answer, at most.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(500);

/// How long a call may wait in line, so that its answer comes before its end.
pub(crate) fn wait_within(wait_ms: u64, limit: Duration) -> Duration {
    let kept = (limit / 4).min(ANSWER_TIME_MAX);
    Duration::from_millis(wait_ms).min(limit.saturating_sub(kept))
}

/// Whether waiting may change a refusal.
fn may_become_free(error: &Error) -> bool {
    let reason = error.rejection().map(|rejection| &rejection.reason);
    matches!(
        reason,
        Some(Reason::LeaseHeld { .. } | Reason::LeaseDelayed { .. })
    )
}

/// Acquires a lease, after waiting in line for it. Dropping the future leaves the line; a grant
/// that is under way then lapses by itself.
pub(crate) async fn acquire(
    store: &Store,
    request: Acquire,
    wait: Duration,
    ending: &mut Ending,
) -> Result<Receipt, Status> {
    if wait.is_zero() {
        let receipt = store.commit_async(request.commit()).await;
        return receipt.map_err(status::of);
    }
    let end = Instant::now()
        .checked_add(wait)
        .unwrap_or_else(Instant::now);
    let commit = request.commit();
    match store.judge(&commit) {
        // The answer of an earlier request is told to whoever asks, out of turn.
        Ok(receipt) if receipt.replayed => {
            return store.commit_async(commit).await.map_err(status::of);
        }
        Err(error) if !may_become_free(&error) => return Err(status::of(error)),
        Ok(_) | Err(_) => {}
    }
    let line = store.line_up(request).map_err(status::of)?;
    let mut refused: Option<Error> = None;
    loop {
        let turn = tokio::select! {
            biased;
            () = ending.begun() => return Err(shutting_down()),
            turn = timeout_at(end, line.turn()) => turn,
        };
        if turn.is_err() {
            // Whoever never had a turn hears how the guard stands.
            let refused = match refused {
                Some(refused) => refused,
                None => match store.judge(&commit) {
                    Err(refused) => refused,
                    Ok(_) => {
                        let receipt = store.commit_async(commit).await;
                        return receipt.map_err(status::of);
                    }
                },
            };
            return Err(status::of(refused));
        }
        match line.attempt().await.map_err(status::of)? {
            Ok(receipt) => return Ok(receipt),
            Err(held) => refused = Some(held),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_before_its_call() {
        let wait = |wait_ms, limit_ms| {
            let wait = wait_within(wait_ms, Duration::from_millis(limit_ms));
            wait.as_millis()
        };
        assert_eq!(wait(0, 60_000), 0);
        assert_eq!(wait(59_000, 60_000), 59_000);
        assert_eq!(wait(60_000, 60_000), 59_500);
        assert_eq!(wait(u64::MAX, 60_000), 59_500);
        assert_eq!(wait(u64::MAX, 400), 300);
        assert_eq!(wait(u64::MAX, 0), 0);
    }
}
