//! The audit trail: what was accepted and what was refused, in files of their own.
//!
//! A thread follows the durable log, off the commits' way, and writes one JSON line for each
//! change, in the order of revisions. The log keeps what has no line yet, so that after a crash the
//! trail is completed from it, before anything else is done: each accepted change has exactly one
//! line. No line has a value in it, and every name is escaped, so that none can break a line or
//! forge one.

mod event;
mod keeper;
mod line;
mod open;
mod refusals;
mod scan;
mod settings;
mod trail;
mod verify;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use highwater_core::{DestinationId, DomainId, DomainName, Incarnation, Revision};
use highwater_wal::{Disk, Lsn};

pub(crate) use self::event::Audited;
pub use self::keeper::AuditFigures;
pub(crate) use self::keeper::{Audit, Group};
use self::keeper::{Ending, Lost, grouped};
pub(crate) use self::refusals::UNAVAILABLE;
pub use self::scan::AuditFault;
pub use self::settings::{AuditConfig, AuditFailure};
use self::trail::Trail;
pub use self::verify::{
    AuditVerified, AuditVerifyError, audit_files, verify_audit, verify_audit_on,
};
use crate::domains::Domains;
use crate::error::OpenError;
use crate::replay::Found;
use crate::shared::Shared;

/// How often a trail that can't be written is tried again, and looked after.
const TICK: Duration = Duration::from_millis(200);

/// Opens the trail of a store that was recovered up to a revision, and completes it from the log.
/// `None` where none is wanted. Where it can't be written the store opens all the same, and does as
/// is set for that.
///
/// # Errors
///
/// [`OpenError`] where the trail is damaged or can't be read, or tells of more than there is.
pub(crate) fn open(
    disk: Arc<dyn Disk>,
    config: Option<AuditConfig>,
    (destination, incarnation): (DestinationId, Incarnation),
    found: &Found,
    (revision, domains): (Revision, &Domains),
) -> Result<Option<Audit>, OpenError> {
    let Some(config) = config else {
        return Ok(None);
    };
    let trail = Trail::open(disk, config, destination, incarnation)?;
    let audited = trail.end.audited;
    if audited.is_some_and(|audited| audited > revision.get()) {
        return Err(OpenError::Corrupt {
            file: "the audit trail".into(),
            offset: 0,
            detail: format!(
                "it tells of changes up to revision {}, but the data ends at {revision}: changes \
                 were lost; or move the files of the audit trail away to begin another",
                audited.unwrap_or(0)
            ),
        });
    }
    let missing = found
        .effects
        .iter()
        .filter(|(_, effect)| audited.is_none_or(|audited| effect.revision().get() > audited));
    let missing: Vec<_> = missing
        .map(|(lsn, effect)| (lsn.get(), Arc::clone(effect)))
        .collect();
    let begins = Revision::start(incarnation.number()).get();
    let wanted = audited.map_or(begins, |audited| audited.saturating_add(1));
    let (has, through) = match missing.first() {
        Some((lsn, effect)) => (effect.revision().get(), lsn.saturating_sub(1)),
        None => (
            revision.get().saturating_add(1),
            found.last.map_or(0, Lsn::get),
        ),
    };
    let lost = (has > wanted).then(|| Lost {
        from: wanted,
        to: has.saturating_sub(1),
        cause: "not_in_log",
    });
    let groups = grouped(missing.into_iter());
    let audit = Audit::new(trail, &config, groups, lost, (through, revision));
    audit.write(&|id| name_of(domains, id), None);
    Ok(Some(audit))
}

fn name_of(domains: &Domains, id: DomainId) -> Option<DomainName> {
    domains.by_id(id).map(|domain| domain.name.clone())
}

/// The work of the audit's thread: writes what is handed over, until the store ends.
pub(crate) fn keep(shared: &Shared) {
    let Some(audit) = &shared.audit else {
        return;
    };
    audit.signal.attach();
    let write = |ending| {
        let domains = shared.domains.load_full();
        audit.write(&|id| name_of(&domains, id), ending);
        if shared.blocked.load(Ordering::SeqCst) {
            shared.judge_signal.raise();
        }
    };
    while !shared.is_stopping() {
        audit.signal.wait(Some(TICK));
        write(None);
    }
    write(Some(if shared.latch.is_poisoned() {
        Ending::Poisoned
    } else {
        Ending::Closed(shared.durable())
    }));
}
