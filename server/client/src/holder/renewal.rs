//! The task that renews.

use std::sync::Arc;
use std::time::Duration;

use highwater_core::{DomainName, Guard, Lease};
use tokio::time::timeout;

use super::Standing;
use super::hold::{Hold, SLEEP_MIN};
use crate::client::Client;
use crate::error::ClientError;
use crate::repeat::jittered;

/// Renewals are this many in a time to live, before jitter.
const RENEWALS: u32 = 3;
/// Where a renewal has failed, the next ones are this many in a time to live.
const RETRIES: u32 = 20;

/// Renews one lease.
pub(super) struct Renewal {
    pub(super) client: Client,
    pub(super) domain: DomainName,
    pub(super) guard: Guard,
    pub(super) lease: Arc<Lease>,
    pub(super) hold: Arc<Hold>,
}

impl Renewal {
    /// Renews once, whatever the hold's deadline: its grant may be older than it seems.
    pub(super) async fn first(&self) -> Result<(), ClientError> {
        let sent = self.hold.now();
        self.send(self.hold.ttl()).await?;
        self.hold.restart(sent);
        Ok(())
    }

    async fn send(&self, limit: Duration) -> Result<(), ClientError> {
        let held = (&self.guard, self.lease.id);
        let authority = self.lease.authority();
        let (domain, ttl) = (&self.domain, None);
        let renewed = self
            .client
            .renew(domain, held, &authority, ttl, limit)
            .await;
        renewed.map(|_| ())
    }

    /// Renews until the hold has ended.
    pub(super) async fn run(self) {
        let ttl = self.hold.ttl();
        let mut pause = jittered(ttl / RENEWALS);
        loop {
            let waited = pause.min(self.hold.remaining()).max(SLEEP_MIN);
            if timeout(waited, self.hold.lost()).await.is_ok() {
                return;
            }
            if matches!(self.hold.standing(), Standing::Lost(_)) {
                return;
            }
            let sent = self.hold.now();
            // One that is held back is given up in time for another.
            let limit = self.hold.remaining().min(ttl / RENEWALS);
            let renewed = timeout(limit, self.send(limit)).await;
            pause = match renewed {
                Ok(Ok(())) => {
                    self.hold.confirm(sent);
                    jittered(ttl / RENEWALS)
                }
                Ok(Err(ClientError::LostAuthority(rejection))) => {
                    return self.hold.refused(&rejection);
                }
                Ok(Err(_)) | Err(_) => {
                    self.hold.doubt();
                    jittered(ttl / RETRIES)
                }
            };
        }
    }
}
