//! A session: one holder, one authority, one destination, until the authority is lost.

use std::sync::{Arc, OnceLock};

use highwater_core::{
    Authorities, Authority, Commit, DomainName, ExpectedDestination, Guard, IntentId, Key, Receipt,
    Rejection, Value,
};
use highwater_proto::convert::ToWire;
use highwater_proto::v1;

use crate::client::{Client, Found};
use crate::error::ClientError;
use crate::holder::{Hold, Passage};
use crate::pipeline::{Commits, Verdicts, pipeline};
use crate::repeat::commit_step;
use crate::scan::{Scan, ScanKeys, TakeOver};

/// Writes and reads under one authority. Clones share its end.
///
/// The authority and the destination are what they were when the session was made; neither is ever
/// refreshed. Once the destination has said that the authority is lost, every later call of the
/// session fails with [`ClientError::SessionStopped`] and nothing is sent: a new grant needs a new
/// session.
#[derive(Clone, Debug)]
pub struct Session {
    client: Client,
    domain: DomainName,
    authority: Authority,
    destination: ExpectedDestination,
    stopped: Arc<OnceLock<Box<Rejection>>>,
    hold: Option<Arc<Hold>>,
}

impl Session {
    pub(crate) fn new(
        client: Client,
        domain: DomainName,
        authority: Authority,
        destination: ExpectedDestination,
    ) -> Self {
        Self {
            client,
            domain,
            authority,
            destination,
            stopped: Arc::new(OnceLock::new()),
            hold: None,
        }
    }

    /// The same session, which goes on only while a lease is held.
    pub(crate) fn within(mut self, hold: Arc<Hold>) -> Self {
        self.hold = Some(hold);
        self
    }

    /// The authority that every request carries.
    #[must_use]
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The domain that every request is for.
    #[must_use]
    pub const fn domain(&self) -> &DomainName {
        &self.domain
    }

    /// The evidence that the authority is lost; `None` as long as it isn't known to be.
    #[must_use]
    pub fn stopped(&self) -> Option<&Rejection> {
        self.stopped.get().map(|evidence| &**evidence)
    }

    /// An empty commit on the session's domain, to which conditions and mutations are added.
    #[must_use]
    pub fn draft(&self) -> Commit {
        Commit::new(self.domain.clone())
    }

    /// Commits a draft under the session's authority: its domain, authority and destination are
    /// replaced by the session's.
    ///
    /// A commit without an intent is sent once. A step of an intent whose outcome isn't known is
    /// sent again, after waits that grow, up to [`crate::ClientOptions::intent_tries`] times within
    /// the deadline: the destination takes it once at most, and tells the first receipt again.
    ///
    /// # Errors
    ///
    /// As [`Client::commit`]; [`ClientError::LostAuthority`] stops the session. A refusal of a
    /// repeated step says that the step had no outcome by then.
    ///
    /// # Example
    ///
    /// ```no_run
    /// use highwater_client::{ClientError, Session};
    /// use highwater_core::{Condition, Key, Value};
    ///
    /// # async fn run(session: Session, key: Key, value: Value) -> Result<(), ClientError> {
    /// let absent = Condition::GenerationIs { key: key.clone(), generation: None };
    /// let draft = session.draft().when(absent).put(key, value);
    /// match session.commit(draft).await {
    ///     Ok(receipt) => println!("created at revision {}", receipt.revision),
    ///     Err(ClientError::ConditionFailed(rejection)) => println!("it exists: {rejection}"),
    ///     Err(other) => return Err(other),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn commit(&self, draft: Commit) -> Result<Receipt, ClientError> {
        let _passage = self.enter().await?;
        let commit = self.sealed(draft);
        let result = if commit.intent.is_some() {
            commit_step(&self.client, &commit, || self.check().is_ok()).await
        } else {
            self.client.commit(&commit).await
        };
        self.note(result)
    }

    /// Writes a value, without metadata.
    ///
    /// # Errors
    ///
    /// As [`Session::commit`].
    pub async fn put(&self, key: Key, value: Value) -> Result<Receipt, ClientError> {
        self.commit(self.draft().put(key, value)).await
    }

    /// Deletes a key. One that doesn't exist is accepted and changes nothing.
    ///
    /// # Errors
    ///
    /// As [`Session::commit`].
    pub async fn delete(&self, key: Key) -> Result<Receipt, ClientError> {
        self.commit(self.draft().delete(key)).await
    }

    /// Raises the fence of a guard to the session's authority, without data.
    ///
    /// # Errors
    ///
    /// As [`Session::commit`].
    pub async fn advance(&self, guard: Guard) -> Result<Receipt, ClientError> {
        self.commit(self.draft().advance(guard)).await
    }

    /// Raises the fence of a guard and reads its records in one step: what a new holder does first.
    ///
    /// # Errors
    ///
    /// As [`Session::commit`].
    pub async fn take_over(&self, guard: &Guard) -> Result<TakeOver, ClientError> {
        self.take_over_asking(guard, &[]).await
    }

    /// As [`Session::take_over`], and finds out what became of intents, as [`Client::reconcile`]
    /// does: see [`TakeOver::found`].
    ///
    /// # Errors
    ///
    /// As [`Session::commit`].
    pub async fn take_over_asking(
        &self,
        guard: &Guard,
        intents: &[IntentId],
    ) -> Result<TakeOver, ClientError> {
        let _passage = self.enter().await?;
        let message = v1::TakeOverRequest {
            destination: Some(self.destination.to_wire()),
            domain: self.domain.as_str().into(),
            guard: guard.to_wire(),
            by: Some(v1::take_over_request::By::Authority(
                self.authority.to_wire(),
            )),
            page_records: 0,
            pages: 0,
            intents: intents.iter().map(ToWire::to_wire).collect(),
        };
        self.note(self.client.take_over(message).await)
    }

    /// Reads a key, only while the session's authority is the highest of its guard.
    ///
    /// # Errors
    ///
    /// As [`Client::get`]; [`ClientError::LostAuthority`] stops the session.
    pub async fn get(&self, key: &Key) -> Result<Found, ClientError> {
        self.check()?;
        self.note(
            self.client
                .get(&self.domain, key, Some(&self.authority))
                .await,
        )
    }

    /// Reads the records of a guard, only while the session's authority is its highest.
    ///
    /// # Errors
    ///
    /// As [`Client::scan`]; [`ClientError::LostAuthority`] stops the session.
    pub async fn scan(&self, guard: Guard) -> Result<Scan, ClientError> {
        self.check()?;
        let (keys, held) = (ScanKeys::Guard(guard), Some(&self.authority));
        self.note(self.client.scan(&self.domain, keys, None, held).await)
    }

    /// Begins a pipeline: many commits over one call, in order, without waiting for each verdict.
    /// Each is sent once, a step of an intent too.
    /// The two halves are used from two tasks, or in turns within the window of
    /// [`crate::ClientOptions::pipeline_window`].
    ///
    /// # Errors
    ///
    /// [`ClientError::NotSent`] when the call can't begin.
    ///
    /// # Example
    ///
    /// ```no_run
    /// use highwater_client::{ClientError, Session};
    /// use highwater_core::{Key, Value};
    ///
    /// # async fn run(session: Session, rows: Vec<(Key, Value)>) -> Result<(), ClientError> {
    /// let (mut commits, mut verdicts) = session.pipeline().await?;
    /// for (key, value) in rows {
    ///     commits.send(session.draft().put(key, value)).await?;
    /// }
    /// commits.finish();
    /// while let Some(verdict) = verdicts.next().await {
    ///     let receipt = verdict.result?;
    ///     println!("command {} is revision {}", verdict.id, receipt.revision);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pipeline(&self) -> Result<(Commits, Verdicts), ClientError> {
        self.check()?;
        pipeline(
            self.clone(),
            self.client.rpc(),
            self.client.options().pipeline_window,
        )
        .await
    }

    /// A draft with what the session holds.
    pub(crate) fn sealed(&self, draft: Commit) -> Commit {
        Commit {
            domain: self.domain.clone(),
            destination: Some(self.destination),
            authority: Authorities::One(self.authority.clone()),
            ..draft
        }
    }

    /// Refuses to go on once the authority is lost, and while the lease isn't held.
    pub(crate) fn check(&self) -> Result<(), ClientError> {
        if let Some(evidence) = self.stopped.get() {
            return Err(ClientError::SessionStopped {
                evidence: evidence.clone(),
            });
        }
        self.hold.as_ref().map_or(Ok(()), |hold| hold.check())
    }

    /// Begins a call. What it gives is kept until the call has ended: a release of the lease waits
    /// for that.
    pub(crate) async fn enter(&self) -> Result<Option<Passage>, ClientError> {
        self.check()?;
        match &self.hold {
            Some(hold) => hold.enter().await.map(Some),
            None => Ok(None),
        }
    }

    /// Takes note of a lost authority.
    pub(crate) fn note<T>(&self, result: Result<T, ClientError>) -> Result<T, ClientError> {
        if let Err(ClientError::LostAuthority(evidence)) = &result {
            // The first evidence is kept.
            let _ = self.stopped.set(evidence.clone());
            if let Some(hold) = &self.hold {
                hold.refused(evidence);
            }
        }
        result
    }
}
