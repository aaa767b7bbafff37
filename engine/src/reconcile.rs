//! Asking what earlier holders did: fence first, then look.

use std::sync::Arc;

use highwater_core::limits::INTENT_MUTATIONS_MAX;
use highwater_core::{
    Authority, Commit, DomainName, ExpectedDestination, Finding, Guard, GuardedRead, Identity,
    IntentId, IntentRecord, IntentState, Mutation, Reason, Receipt, Work,
};

use crate::error::Error;
use crate::snapshot::Snapshot;
use crate::store::Store;

/// How often a part is tried when somebody changes its intents between the look and the commit.
const ATTEMPTS: usize = 8;

/// A question what became of intents.
#[derive(Clone, Debug)]
pub struct Reconcile {
    /// The domain.
    pub domain: DomainName,
    /// The intents. Each should be named once.
    pub intents: Vec<IntentId>,
    /// The guard that the intents' effects lie under, and the authority to fence it with. `None`
    /// only looks: then nothing is ever said to be absent.
    pub fence: Option<(Guard, Authority)>,
    /// The destination that the caller means; `None` to not check it.
    pub destination: Option<ExpectedDestination>,
    /// Who calls, as the transport authenticated it.
    pub caller: Option<Identity>,
}

/// What is known of one intent.
#[derive(Clone, Debug)]
pub struct Found {
    /// The intent.
    pub id: IntentId,
    /// What is stored of it, with the receipt of each step; `None` if nothing is.
    pub record: Option<Arc<IntentRecord>>,
    /// What that says.
    pub finding: Finding,
}

/// The answer to a [`Reconcile`].
#[derive(Clone, Debug)]
pub struct Reconciled {
    /// What is known of each intent, in the order of the question.
    pub found: Vec<Found>,
    /// The statement about the fence; `None` if nothing was fenced.
    pub receipt: Option<Receipt>,
    /// The state that the answer is from. It has the fence.
    pub snapshot: Snapshot,
}

/// The intents that a fence still has to be laid around, a part at a time.
struct Claims<'a> {
    question: &'a Reconcile,
    fence: &'a (Guard, Authority),
    parts: std::slice::Chunks<'a, IntentId>,
    part: &'a [IntentId],
    attempts: usize,
}

impl Reconcile {
    /// A question about intents of a domain, which only looks until a fence is named.
    #[must_use]
    pub const fn new(domain: DomainName, intents: Vec<IntentId>) -> Self {
        Self {
            domain,
            intents,
            fence: None,
            destination: None,
            caller: None,
        }
    }

    /// Fencing this guard with this authority first.
    #[must_use]
    pub fn fencing(mut self, guard: Guard, authority: Authority) -> Self {
        self.fence = Some((guard, authority));
        self
    }

    fn commit(&self, (_, authority): &(Guard, Authority)) -> Commit {
        let mut commit = Commit::new(self.domain.clone()).under(authority.clone());
        commit.destination = self.destination;
        commit.caller = self.caller.clone();
        commit
    }

    /// The commit that raises the fence.
    pub(crate) fn advance(&self, fence: &(Guard, Authority)) -> Commit {
        self.commit(fence).advance(fence.0.clone())
    }

    fn claims<'a>(&'a self, fence: &'a (Guard, Authority)) -> Claims<'a> {
        Claims {
            question: self,
            fence,
            parts: self.intents.chunks(INTENT_MUTATIONS_MAX),
            part: &[],
            attempts: 0,
        }
    }

    /// Reads the answer under the fence, from a state that has it: only this holder can have
    /// changed anything since, or the read is refused.
    pub(crate) fn answer(&self, store: &Store) -> Result<(Vec<Found>, Snapshot), Error> {
        let snapshot = store.snapshot()?;
        if let Some((guard, authority)) = &self.fence {
            snapshot.admit(&GuardedRead {
                domain: self.domain.clone(),
                destination: self.destination,
                authority: authority.clone(),
                caller: self.caller.clone(),
                guards: vec![guard.clone()],
            })?;
        }
        let fenced = self.fence.as_ref().map(|(guard, _)| guard);
        let mut found = Vec::with_capacity(self.intents.len());
        for id in &self.intents {
            let record = snapshot.intent(&self.domain, id)?;
            let finding = Finding::of(record.as_deref(), fenced);
            found.push(Found {
                id: id.clone(),
                record,
                finding,
            });
        }
        Ok((found, snapshot))
    }
}

impl Claims<'_> {
    /// The next commit to make: it binds those of a part that aren't bound and haven't ended to the
    /// guard, so that no earlier holder can take a step of them any more.
    fn next(&mut self, at: &Snapshot) -> Result<Option<Commit>, Error> {
        loop {
            let mut commit = self.question.commit(self.fence);
            for intent in self.part {
                let record = at.intent(&self.question.domain, intent)?;
                let may_go_on = record.is_none_or(|record| {
                    record.binding.is_none() && !matches!(record.state, IntentState::Ended(_))
                });
                if may_go_on {
                    commit = commit.with(Mutation::BindIntent {
                        intent: intent.clone(),
                        work: Work::under(self.fence.0.clone()),
                    });
                }
            }
            if !commit.mutations.is_empty() {
                return Ok(Some(commit));
            }
            let Some(part) = self.parts.next() else {
                return Ok(None);
            };
            (self.part, self.attempts) = (part, 0);
        }
    }

    /// Takes the verdict on it. If an intent was changed between the look and the commit, the same
    /// part is looked at again.
    fn took(&mut self, verdict: Result<Receipt, Error>) -> Result<(), Error> {
        self.attempts += 1;
        match verdict {
            Err(error) if overtaken(&error) && self.attempts < ATTEMPTS => Ok(()),
            verdict => {
                self.part = &[];
                verdict.map(|_| ())
            }
        }
    }
}

fn overtaken(error: &Error) -> bool {
    let reason = error.rejection().map(|rejection| &rejection.reason);
    matches!(
        reason,
        Some(Reason::IntentConflict(_) | Reason::IntentClosed { .. })
    )
}

impl Store {
    /// Says what became of intents: whether steps of them took effect, with their receipts, or none
    /// did. With a fence it is raised first, and an intent without a step is bound to its guard, so
    /// that "absent" stays true of every earlier holder. Without one, whatever isn't there is
    /// indeterminate. Blocks the thread.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] if the authority isn't above the fence, also when another one was
    /// accepted between the fence and the look; else as [`Store::commit`].
    pub fn reconcile(&self, question: &Reconcile) -> Result<Reconciled, Error> {
        let receipt = match &question.fence {
            Some(fence) => Some(self.fence_intents(question, fence)?),
            None => None,
        };
        let (found, snapshot) = question.answer(self)?;
        Ok(Reconciled {
            found,
            receipt,
            snapshot,
        })
    }

    /// As [`Store::reconcile`], without blocking a thread.
    ///
    /// # Errors
    ///
    /// As [`Store::reconcile`].
    pub async fn reconcile_async(&self, question: &Reconcile) -> Result<Reconciled, Error> {
        let receipt = match &question.fence {
            Some(fence) => Some(self.fence_intents_async(question, fence).await?),
            None => None,
        };
        let (found, snapshot) = question.answer(self)?;
        Ok(Reconciled {
            found,
            receipt,
            snapshot,
        })
    }

    pub(crate) fn fence_intents(
        &self,
        question: &Reconcile,
        fence: &(Guard, Authority),
    ) -> Result<Receipt, Error> {
        let receipt = self.commit(question.advance(fence))?;
        let mut claims = question.claims(fence);
        while let Some(commit) = claims.next(&self.snapshot()?)? {
            claims.took(self.commit(commit))?;
        }
        Ok(receipt)
    }

    pub(crate) async fn fence_intents_async(
        &self,
        question: &Reconcile,
        fence: &(Guard, Authority),
    ) -> Result<Receipt, Error> {
        let receipt = self.commit_async(question.advance(fence)).await?;
        let mut claims = question.claims(fence);
        while let Some(commit) = claims.next(&self.snapshot()?)? {
            claims.took(self.commit_async(commit).await)?;
        }
        Ok(receipt)
    }
}
