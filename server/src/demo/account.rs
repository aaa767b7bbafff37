//! What workers do with the account of the second story: leases from the store itself, payments
//! that are intents, and the question what became of them.

use highwater::{
    Acquire, Authority, Commit, Effects, Guard, Holder, IntentId, Mutation, Owner, Receipt,
    Reconcile, Step, Ttl, Work,
};

use super::check::{ABSENT, PRESENT};
use super::world::{Verdict, World, key, stated, value};
use crate::cli::failure::Failure;
use crate::cli::input::InputError;

/// Where the account's payments stand.
pub(super) const LEDGER: &str = "L/ledger";
/// The guard of the account.
const ACCOUNT: &str = "L";
/// Longer than the demonstration: nothing lapses in it.
const TTL_MS: u64 = 3_600_000;

fn guard() -> Result<Guard, Failure> {
    Ok(Guard::new(ACCOUNT).map_err(InputError::from)?)
}

fn intent(name: &str) -> Result<IntentId, Failure> {
    Ok(IntentId::new(name).map_err(InputError::from)?)
}

impl World {
    /// The authority that the store has granted last to a worker.
    fn own(&self, holder: &str) -> Result<Authority, Failure> {
        self.granted.get(holder).cloned().ok_or(Failure::Demo)
    }

    pub(super) fn acquire(&mut self, holder: &'static str) -> Result<Receipt, Failure> {
        let name = Holder::new(holder).map_err(InputError::from)?;
        let ttl = Ttl::new(TTL_MS).ok_or(InputError::Number { what: "ttl" })?;
        let request = Acquire::new(self.jobs.clone(), guard()?, name, ttl);
        let receipt = self.store.commit(request.commit())?;
        if let Some(leased) = receipt.leases.first() {
            self.granted.insert(holder, leased.lease.authority());
        }
        Ok(receipt)
    }

    pub(super) fn revoke(&self) -> Result<Receipt, Failure> {
        let revoke = Mutation::Revoke {
            guard: guard()?,
            lease: None,
            by: Owner::new("operator").map_err(InputError::from)?,
        };
        Ok(self
            .store
            .commit(Commit::new(self.jobs.clone()).with(revoke))?)
    }

    pub(super) fn bind(&self, holder: &str, name: &str) -> Result<Receipt, Failure> {
        let bind = Mutation::BindIntent {
            intent: intent(name)?,
            work: Work::under(guard()?),
        };
        let commit = Commit::new(self.jobs.clone()).under(self.own(holder)?);
        Ok(self.store.commit(commit.with(bind))?)
    }

    pub(super) fn pay(&self, holder: &str, name: &str, ledger: &str) -> Result<Receipt, Failure> {
        let commit = Commit::new(self.jobs.clone())
            .for_intent(intent(name)?, Step::FIRST)
            .completing()
            .under(self.own(holder)?)
            .put(key(LEDGER)?, value(ledger)?);
        Ok(self.store.commit(commit)?)
    }

    pub(super) fn reconcile(&self, holder: &str, name: &str) -> Result<Verdict, Failure> {
        let question = Reconcile::new(self.jobs.clone(), vec![intent(name)?])
            .fencing(guard()?, self.own(holder)?);
        let told = self.store.reconcile(&question)?;
        let guards = told.receipt.as_ref().map(|receipt| &receipt.guards);
        let fence = guards.and_then(|guards| guards.first());
        let fence = fence.map(|guard| stated(&guard.fence));
        let found = told.found.first().ok_or(Failure::Demo)?;
        let steps = found.record.iter().flat_map(|record| &record.steps);
        let receipt = steps.last().map(|step| step.receipt.revision);
        let (word, message) = match (found.finding.effects, receipt) {
            (Effects::Present, Some(at)) => (PRESENT, format!("it took effect at revision {at}")),
            (Effects::Absent, _) => {
                let message = "it took no effect, and no earlier holder can make it any more";
                (ABSENT, message.to_owned())
            }
            _ => return Err(Failure::Demo),
        };
        Ok((Some(word.into()), message, fence))
    }
}
