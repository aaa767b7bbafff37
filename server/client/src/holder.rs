//! A holder: a lease that is kept alive, and writes that stop with it.

mod hold;
mod renewal;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use highwater_core::{Authority, DomainName, Guard, Lease, Receipt, Rejection};
use tokio::task::JoinHandle;

pub(crate) use self::hold::{Hold, Passage};
use crate::client::Client;
use crate::clock::{Clock, SystemClock};
use crate::error::ClientError;
use crate::leases::{Acquire, leased};
use crate::session::Session;

/// How a holder counts its time.
#[derive(Clone, Debug)]
pub struct HolderOptions {
    /// How much earlier than the lease can lapse the holder stops. `None`: a tenth of its time to
    /// live. It has to cover how far the clocks of both machines drift apart in that time.
    pub margin: Option<Duration>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl Default for HolderOptions {
    fn default() -> Self {
        Self {
            margin: None,
            clock: Arc::new(SystemClock::default()),
        }
    }
}

/// Why a holder doesn't hold any more. Each is final: acquire anew for a new term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// By the holder's own clock the lease may have lapsed, and no renewal was confirmed.
    Expired,
    /// The destination said so.
    Refused(Box<Rejection>),
    /// It let the lease go.
    Released,
}

/// Whether a holder may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It holds the lease, as far as can be known here.
    Held,
    /// The last renewal failed, or nobody knows whether it took effect. Nothing is sent until one
    /// is confirmed, which may still happen.
    Doubtful,
    /// It holds it no more.
    Lost(Lost),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("the lease may have lapsed, and no renewal was confirmed"),
            Self::Refused(rejection) => rejection.fmt(f),
            Self::Released => f.write_str("the lease was let go"),
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held => f.write_str("the lease is held"),
            Self::Doubtful => f.write_str("whether the lease was renewed isn't known"),
            Self::Lost(lost) => lost.fmt(f),
        }
    }
}

/// Holds a lease: renews it on a task of its own, about three times in its time to live, and knows
/// when to stop.
///
/// Its own deadline is counted from the moment at which the last request that the destination
/// confirmed was *sent*, so it lies before the destination's, by at least the margin. From then on,
/// and while a renewal is in doubt, nothing is sent through its [`LeaseHolder::session`]. That
/// saves useless work; what stops a write that is on its way already is the destination's fence.
///
/// Dropping it stops the renewals; the lease then lapses by itself. It must live inside a Tokio
/// runtime.
///
/// # Example
///
/// ```no_run
/// use std::time::Duration;
///
/// use highwater_client::{Acquire, Client, ClientError, HolderOptions, LeaseHolder};
/// use highwater_core::{DomainName, Key, Value};
///
/// # async fn run(
/// #     client: Client, domain: DomainName, wanted: Acquire, key: Key, value: Value,
/// # ) -> Result<(), ClientError> {
/// let wanted = wanted.waiting(Duration::from_secs(30));
/// let holder = LeaseHolder::acquire(&client, &domain, &wanted, HolderOptions::default()).await?;
/// let session = holder.session();
/// tokio::select! {
///     lost = holder.lost() => println!("stop: {lost:?}"),
///     written = session.put(key, value) => println!("{written:?}"),
/// }
/// holder.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LeaseHolder {
    client: Client,
    domain: DomainName,
    guard: Guard,
    lease: Arc<Lease>,
    hold: Arc<Hold>,
    renewals: JoinHandle<()>,
}

impl LeaseHolder {
    /// Acquires a lease and begins to renew it. Where the grant was waited for, it is renewed once
    /// before this returns, since nobody knows how long ago it was made.
    ///
    /// # Errors
    ///
    /// As [`Client::acquire`], and as [`Client::renew`]. A lease that was granted then lapses by
    /// itself.
    pub async fn acquire(
        client: &Client,
        domain: &DomainName,
        wanted: &Acquire,
        options: HolderOptions,
    ) -> Result<Self, ClientError> {
        let ttl = Duration::from_millis(wanted.ttl.get());
        let margin = options.margin.unwrap_or(ttl / 10);
        let sent = options.clock.now();
        let receipt = client.acquire(domain, wanted).await?;
        let lease = Arc::clone(&leased(&receipt)?.lease);
        let hold = Arc::new(Hold::new(options.clock, ttl, margin, sent));
        let renewal = renewal::Renewal {
            client: client.clone(),
            domain: domain.clone(),
            guard: wanted.guard.clone(),
            lease: Arc::clone(&lease),
            hold: Arc::clone(&hold),
        };
        if !wanted.wait.is_zero() || receipt.replayed {
            renewal.first().await?;
        }
        Ok(Self {
            client: client.clone(),
            domain: domain.clone(),
            guard: wanted.guard.clone(),
            lease,
            hold,
            renewals: tokio::spawn(renewal.run()),
        })
    }

    /// Whether it may go on: it holds the lease, and no renewal is in doubt. Asks the clock.
    #[must_use]
    pub fn is_holder(&self) -> bool {
        self.standing() == Standing::Held
    }

    /// How it stands now. Asks the clock.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.hold.standing()
    }

    /// The authority that the lease granted.
    #[must_use]
    pub fn authority(&self) -> Authority {
        self.lease.authority()
    }

    /// The lease, as it was granted.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// A session under the lease's authority that sends nothing while it isn't held: each call asks
    /// the clock before each sending. Clones share its end.
    #[must_use]
    pub fn session(&self) -> Session {
        let session = self.client.session(self.domain.clone(), self.authority());
        session.within(Arc::clone(&self.hold))
    }

    /// Waits until it is lost, and says why. Cancel-safe. In a suspend of the machine timers stand
    /// still, so this can be late by a suspend; [`LeaseHolder::is_holder`] is never late.
    pub async fn lost(&self) -> Lost {
        self.hold.lost().await
    }

    /// Lets the lease go. First it is marked as not held, so that no call begins any more; then
    /// what has begun is waited for, commits of a pipeline until their verdicts are taken; only
    /// then is the release sent.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotHolder`] where it was lost before, or where what has begun doesn't end
    /// within the client's deadline: then nothing was sent, and the lease lapses by itself. Else as
    /// [`Client::release`].
    pub async fn release(self) -> Result<Receipt, ClientError> {
        self.hold.let_go()?;
        self.hold.drained(self.client.options().deadline).await?;
        let held = (&self.guard, self.lease.id);
        let authority = self.lease.authority();
        self.client.release(&self.domain, held, &authority).await
    }
}

impl Drop for LeaseHolder {
    fn drop(&mut self) {
        self.renewals.abort();
    }
}
