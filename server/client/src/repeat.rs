//! Sending a step of an intent again, where it isn't known what became of it.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use highwater_core::{Commit, Receipt};
use highwater_proto::convert::ToWire;
use highwater_proto::v1;
use tokio::time::{Instant, sleep};

use crate::client::{Client, within_bound};
use crate::error::{ClientError, NotSent};

/// How long is waited before the first repetition, at most; each later wait may be twice as long.
const WAIT_FIRST: Duration = Duration::from_millis(50);
/// How long is waited before a repetition, at most.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Commits a step of an intent. Where its outcome isn't known it is sent again, within the client's
/// deadline and number of tries: the destination takes it once at most, and answers with the first
/// receipt.
///
/// Once one sending has an unknown outcome, only the destination's verdict on the step changes
/// that. `may_send` is asked before each repetition. A later sending that isn't taken, because
/// there is no connection or because no effects are taken now, says nothing about the earlier one.
pub(crate) async fn commit_step(
    client: &Client,
    commit: &Commit,
    may_send: impl Fn() -> bool,
) -> Result<Receipt, ClientError> {
    let message = v1::CommitRequest {
        commit: Some(commit.to_wire()),
    };
    within_bound(&message)?;
    let options = client.options();
    let end = Instant::now() + options.deadline;
    let mut tries_left = options.intent_tries.max(1);
    let mut wait = WAIT_FIRST;
    let mut unknown = None;
    loop {
        let limit = end.saturating_duration_since(Instant::now());
        let result = client.send(message.clone(), limit).await;
        tries_left -= 1;
        match (result, &unknown) {
            (Err(error), _) if matches!(error, ClientError::OutcomeUnknown { .. }) => {
                unknown = Some(error);
            }
            (Err(error), Some(_)) if says_nothing(&error) => {}
            (verdict, _) => return verdict,
        }
        let pause = jittered(wait);
        wait = (wait * 2).min(WAIT_MAX);
        match unknown.take() {
            Some(error) if tries_left == 0 || Instant::now() + pause >= end => return Err(error),
            earlier => unknown = earlier,
        }
        sleep(pause).await;
        match unknown.take() {
            Some(error) if !may_send() => return Err(error),
            earlier => unknown = earlier,
        }
    }
}

/// Whether a sending that ended so has no verdict on the step.
const fn says_nothing(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Unavailable(_)
            | ClientError::NotSent(NotSent::Connect(_) | NotSent::Refused(_))
    )
}

/// Between half of a wait and all of it, drawn at random, so that many that failed at once don't
/// come back at once.
pub(crate) fn jittered(wait: Duration) -> Duration {
    // The keys of a new hasher are random.
    let drawn = RandomState::new().hash_one(()) % 1_024;
    let half = wait / 2;
    half + half * u32::try_from(drawn).unwrap_or(0) / 1_024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_differ_within_their_bounds() {
        let waits: Vec<Duration> = (0..64).map(|_| jittered(WAIT_MAX)).collect();
        assert!(
            waits
                .iter()
                .all(|wait| *wait >= WAIT_MAX / 2 && *wait <= WAIT_MAX)
        );
        assert!(waits.iter().any(|wait| *wait != waits[0]));
    }
}
