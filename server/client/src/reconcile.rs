//! Asking what earlier holders did: intents and what became of them.

use highwater_core::{
    Authority, DomainName, Finding, Guard, Holder, IntentId, IntentRecord, IntentSummary,
    Malformed, Receipt, Revision, Ttl,
};
use highwater_proto::convert::{FromWire, ToWire, optional};
use highwater_proto::v1;
use highwater_proto::v1::found_intent::Stored;
use highwater_proto::v1::take_over_request::By;

use crate::client::{Client, timed, within_bound};
use crate::error::ClientError;
use crate::scan::TakeOver;

/// What is stored of an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredIntent {
    /// All of it, with the receipts of its steps.
    Whole(IntentRecord),
    /// In brief.
    Brief(IntentSummary),
}

/// What became of an intent, as far as the destination knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntentOutcome {
    /// The intent.
    pub id: IntentId,
    /// Whether steps of it took effect, and whether an earlier holder can still add one.
    pub finding: Finding,
    /// What is stored of it; `None` if nothing is.
    pub stored: Option<StoredIntent>,
}

/// The answer to [`Client::reconcile`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconciled {
    /// The revision that was read. It has the fence.
    pub revision: Revision,
    /// What is known of each intent, in the order of the question.
    pub found: Vec<IntentOutcome>,
    /// The statement about the fence; `None` if nothing was fenced.
    pub receipt: Option<Receipt>,
}

impl FromWire<v1::FoundIntent> for IntentOutcome {
    fn from_wire(wire: v1::FoundIntent) -> Result<Self, Malformed> {
        let finding = Finding::from_wire(&wire)?;
        let stored = match wire.stored {
            None => None,
            Some(Stored::Record(record)) => {
                Some(StoredIntent::Whole(IntentRecord::from_wire(record)?))
            }
            Some(Stored::Summary(summary)) => {
                Some(StoredIntent::Brief(IntentSummary::from_wire(summary)?))
            }
        };
        Ok(Self {
            id: IntentId::from_wire(wire.id)?,
            finding,
            stored,
        })
    }
}

impl FromWire<v1::ReconcileResponse> for Reconciled {
    fn from_wire(wire: v1::ReconcileResponse) -> Result<Self, Malformed> {
        Ok(Self {
            revision: Revision::from_wire(wire.revision)?,
            found: outcomes(wire.found)?,
            receipt: optional(wire.receipt)?,
        })
    }
}

/// Reads what was found of intents.
pub(crate) fn outcomes(wire: Vec<v1::FoundIntent>) -> Result<Vec<IntentOutcome>, Malformed> {
    wire.into_iter().map(FromWire::from_wire).collect()
}

impl Client {
    /// Says what became of intents, at most [`highwater_proto::ASKED_INTENTS_MAX`]: whether steps
    /// of them took effect, or none did. With a fence it is raised first, and an intent without a
    /// step is bound to its guard, so that "absent" stays true of every earlier holder. Without
    /// one it is a plain look, and whatever isn't there is indeterminate.
    ///
    /// # Errors
    ///
    /// [`ClientError::LostAuthority`] where the authority isn't the highest of the guard, also
    /// when another one was accepted between the fence and the look; else as [`Client::commit`].
    pub async fn reconcile(
        &self,
        domain: &DomainName,
        intents: &[IntentId],
        fence: Option<(Guard, Authority)>,
    ) -> Result<Reconciled, ClientError> {
        let fence = fence.map(|(guard, authority)| v1::GuardAuthority {
            guard: guard.to_wire(),
            authority: Some(authority.to_wire()),
        });
        let fences = fence.is_some();
        let message = v1::ReconcileRequest {
            destination: self.named(),
            domain: domain.as_str().into(),
            intents: intents.iter().map(ToWire::to_wire).collect(),
            fence,
        };
        within_bound(&message)?;
        let answer = self.rpc().reconcile(timed(self.options(), message)).await;
        let answer = answer.map_err(|status| match fences {
            true => ClientError::of_write(status),
            false => ClientError::of_read(status),
        })?;
        Ok(Reconciled::from_wire(answer.into_inner())?)
    }

    /// Acquires and seals a lease on a guard, finds out about intents, and reads the guard's
    /// records: all that a new holder does first, in one call. The lease is the one of
    /// [`TakeOver::acquired`]; it lapses by itself unless it is renewed.
    ///
    /// # Errors
    ///
    /// [`ClientError::ConditionFailed`] where the guard isn't free; else as [`Client::commit`].
    pub async fn acquire_and_take_over(
        &self,
        domain: &DomainName,
        guard: &Guard,
        (holder, ttl): (&Holder, Ttl),
        intents: &[IntentId],
    ) -> Result<TakeOver, ClientError> {
        let by = By::Acquire(v1::TakeOverLease {
            holder: holder.to_wire(),
            ttl_ms: ttl.get(),
            supersede: false,
        });
        self.take_over(v1::TakeOverRequest {
            destination: self.named(),
            domain: domain.as_str().into(),
            guard: guard.to_wire(),
            by: Some(by),
            page_records: 0,
            pages: 0,
            intents: intents.iter().map(ToWire::to_wire).collect(),
        })
        .await
    }
}
