//! What a holder knows of its lease, and who passes because of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use highwater_core::Rejection;
use tokio::sync::{OwnedRwLockReadGuard, RwLock, watch};
use tokio::time::timeout;

use super::{Lost, Standing};
use crate::clock::Clock;
use crate::error::ClientError;

/// No shorter sleeps: a clock that stands still must not make a loop of them.
pub(super) const SLEEP_MIN: Duration = Duration::from_millis(1);

/// A call under way that the holder's lease covers; the release waits until it is dropped.
pub(crate) type Passage = OwnedRwLockReadGuard<()>;

/// The state of a hold, shared by the holder, its renewals and its sessions.
#[derive(Debug)]
pub(crate) struct Hold {
    clock: Arc<dyn Clock>,
    ttl: Duration,
    margin: Duration,
    /// On the clock, in nanoseconds; it only rises.
    deadline: AtomicU64,
    doubtful: AtomicBool,
    lost: OnceLock<Lost>,
    told: watch::Sender<bool>,
    passages: Arc<RwLock<()>>,
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Hold {
    /// A hold by a request that was sent then.
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        ttl: Duration,
        margin: Duration,
        sent: Duration,
    ) -> Self {
        let hold = Self {
            clock,
            ttl,
            margin,
            deadline: AtomicU64::new(0),
            doubtful: AtomicBool::new(false),
            lost: OnceLock::new(),
            told: watch::Sender::new(false),
            passages: Arc::default(),
        };
        hold.extend(sent);
        hold
    }

    fn extend(&self, sent: Duration) {
        let deadline = sent.saturating_add(self.ttl).saturating_sub(self.margin);
        self.deadline
            .fetch_max(nanoseconds(deadline), Ordering::SeqCst);
    }

    /// Begins anew with a request that was sent then and confirmed, before anybody has looked.
    pub(crate) fn restart(&self, sent: Duration) {
        self.extend(sent);
    }

    /// The time on the clock.
    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// How long the lease lasts after a renewal.
    pub(crate) const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// How long the hold lasts yet.
    pub(crate) fn remaining(&self) -> Duration {
        let deadline = Duration::from_nanos(self.deadline.load(Ordering::SeqCst));
        deadline.saturating_sub(self.now())
    }

    /// How it stands. A deadline that has passed is final from the first look on.
    pub(crate) fn standing(&self) -> Standing {
        if let Some(lost) = self.lost.get() {
            return Standing::Lost(lost.clone());
        }
        if self.remaining().is_zero() {
            return Standing::Lost(self.lose(Lost::Expired));
        }
        if self.doubtful.load(Ordering::SeqCst) {
            Standing::Doubtful
        } else {
            Standing::Held
        }
    }

    /// Ends it, unless it has ended. Gives why it did.
    fn lose(&self, cause: Lost) -> Lost {
        let lost = self.lost.get_or_init(|| cause).clone();
        self.told.send_replace(true);
        lost
    }

    /// Takes over that the destination confirmed a renewal that was sent then. One that comes after
    /// the deadline revives nothing.
    pub(crate) fn confirm(&self, sent: Duration) {
        if !matches!(self.standing(), Standing::Lost(_)) {
            self.extend(sent);
            self.doubtful.store(false, Ordering::SeqCst);
        }
    }

    /// Takes note that a renewal has failed, or that nobody knows what became of it.
    pub(crate) fn doubt(&self) {
        self.doubtful.store(true, Ordering::SeqCst);
    }

    /// Takes note that the destination says that the authority is lost.
    pub(crate) fn refused(&self, rejection: &Rejection) {
        self.lose(Lost::Refused(Box::new(rejection.clone())));
    }

    /// Refuses to go on unless the lease is held.
    pub(crate) fn check(&self) -> Result<(), ClientError> {
        match self.standing() {
            Standing::Held => Ok(()),
            standing => Err(ClientError::NotHolder(standing)),
        }
    }

    /// Lets a call begin that the release waits for.
    pub(crate) async fn enter(&self) -> Result<Passage, ClientError> {
        let passage = Arc::clone(&self.passages).read_owned().await;
        // The release closes the way first and waits then: who finds it open here is waited for.
        self.check()?;
        Ok(passage)
    }

    /// Marks it as let go, unless it has ended otherwise.
    pub(crate) fn let_go(&self) -> Result<(), ClientError> {
        if let Standing::Lost(lost) = self.standing() {
            return Err(ClientError::NotHolder(Standing::Lost(lost)));
        }
        match self.lose(Lost::Released) {
            Lost::Released => Ok(()),
            lost => Err(ClientError::NotHolder(Standing::Lost(lost))),
        }
    }

    /// Waits until every call that began has ended.
    pub(crate) async fn drained(&self, limit: Duration) -> Result<(), ClientError> {
        match timeout(limit, self.passages.write()).await {
            Ok(_) => Ok(()),
            Err(_) => Err(ClientError::NotHolder(self.standing())),
        }
    }

    /// Waits until it has ended.
    pub(crate) async fn lost(&self) -> Lost {
        let mut told = self.told.subscribe();
        loop {
            if let Standing::Lost(lost) = self.standing() {
                return lost;
            }
            // Whoever looks at the clock tells; so does the timer, should nobody look.
            let _ = timeout(self.remaining().max(SLEEP_MIN), told.changed()).await;
        }
    }
}
