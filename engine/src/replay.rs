//! What the log says beyond the index: decoded, checked for gaps, and folded.

use std::sync::Arc;

use highwater_core::codec::decode_effect;
use highwater_core::{
    Change, DestinationId, Domain, DomainId, Effect, Incarnation, Revision, check_domain,
    check_fence, check_intent, check_record,
};
use highwater_wal::{Lsn, Replay, ReplayStop};

use crate::domains::Domains;
use crate::error::OpenError;
use crate::group::effects_in;
use crate::layer::Layer;
use crate::tables::Applied;

/// The effects of the log, oldest first, with the frame of each.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) effects: Vec<(Lsn, Arc<Effect>)>,
    /// Payload bytes of each frame.
    pub(crate) frames: Vec<(Lsn, u64)>,
    /// The last position that the log gave out. Its frame may be gone: a segment without any can be
    /// all that is left.
    pub(crate) last: Option<Lsn>,
    /// Why reading stopped, if it did.
    pub(crate) wrong: Option<(Lsn, String)>,
}

impl Found {
    /// Collects what the log reports.
    pub(crate) fn collect(&mut self) -> Box<Replay<'_>> {
        Box::new(|lsn, payload| {
            self.frames.push((lsn, payload.len() as u64));
            for bytes in effects_in(payload) {
                let bytes = bytes.ok_or("an effect has a wrong length".to_owned());
                match bytes.and_then(|bytes| decode_effect(bytes).map_err(|e| e.to_string())) {
                    Ok(effect) => self.effects.push((lsn, Arc::new(effect))),
                    Err(detail) => {
                        self.wrong = Some((lsn, detail));
                        return Err(ReplayStop);
                    }
                }
            }
            Ok(())
        })
    }

    /// The store's beginning, if the log still reaches back to it.
    pub(crate) fn genesis(&self) -> Option<(DestinationId, Incarnation, Revision)> {
        let (_, effect) = self.effects.first()?;
        match effect.change() {
            Change::Genesis {
                destination,
                incarnation,
            } => Some((*destination, *incarnation, effect.revision())),
            Change::DomainCreated(_) | Change::Commit { .. } => None,
        }
    }
}

/// The error for a frame whose content is wrong although its checksum is right.
pub(crate) fn wrong_frame(lsn: Option<Lsn>, detail: impl Into<String>) -> OpenError {
    let file = match lsn {
        Some(lsn) => format!("the log's frame {}", lsn.get()),
        None => "the log".into(),
    };
    OpenError::Corrupt {
        file,
        offset: 0,
        detail: detail.into(),
    }
}

/// The state after the log was folded over the index.
#[derive(Debug)]
pub(crate) struct Folded {
    pub(crate) layer: Layer,
    pub(crate) domains: Domains,
    pub(crate) revision: Revision,
    /// Log bytes of the effects that the index doesn't have.
    pub(crate) log_bytes: u64,
}

/// Folds every effect that the index doesn't have. Revisions must follow one another without a gap,
/// from the index's on, and every effect must keep the invariants.
///
/// # Errors
///
/// [`OpenError::Corrupt`] naming the frame.
pub(crate) fn fold(
    found: &Found,
    applied: Option<&Applied>,
    start: Revision,
    domains: Domains,
) -> Result<Folded, OpenError> {
    let revision = applied.map_or(start, |applied| applied.revision);
    let mut folded = Folded {
        layer: Layer::default(),
        domains,
        revision,
        log_bytes: 0,
    };
    let mut before: Option<Revision> = None;
    for (lsn, effect) in &found.effects {
        let next = effect.revision();
        if before.is_some_and(|before| before.next() != Some(next)) {
            return Err(wrong_frame(
                Some(*lsn),
                "its revision doesn't follow the one before",
            ));
        }
        before = Some(next);
        if next <= folded.revision {
            continue;
        }
        if folded.revision.next() != Some(next) {
            return Err(wrong_frame(
                Some(*lsn),
                "effects between the index and it are missing",
            ));
        }
        folded.take(*lsn, effect)?;
    }
    let last = found.last.map_or(0, Lsn::get);
    let indexed = applied.map_or(0, |applied| applied.lsn);
    if indexed > last {
        return Err(wrong_frame(
            None,
            "it ends before what the index already holds",
        ));
    }
    if found.frames.is_empty() && indexed < last {
        return Err(wrong_frame(
            None,
            "effects between the index and its end are missing",
        ));
    }
    let newer = found.frames.iter().filter(|(lsn, _)| lsn.get() > indexed);
    folded.log_bytes = newer.map(|(_, bytes)| bytes).sum();
    Ok(folded)
}

impl Folded {
    fn take(&mut self, lsn: Lsn, effect: &Arc<Effect>) -> Result<(), OpenError> {
        let wrong = |detail: String| wrong_frame(Some(lsn), detail);
        let revision = effect.revision();
        match effect.change() {
            Change::Genesis { .. } => return Err(wrong("the store begins a second time".into())),
            Change::DomainCreated(domain) => {
                check_domain(domain).map_err(|violation| wrong(violation.to_string()))?;
                if domain.id.get() != self.domains.len().saturating_add(1) {
                    return Err(wrong("a domain has a number out of order".into()));
                }
                self.domains = self.domains.with(Arc::clone(domain));
            }
            Change::Commit {
                domain,
                records,
                fences,
                intents,
            } => {
                let domain = self
                    .domain(*domain)
                    .ok_or_else(|| wrong("unknown domain".into()))?;
                let checked = records
                    .iter()
                    .filter_map(|change| change.record.as_ref())
                    .map(|record| check_record(&domain, record, revision))
                    .chain(
                        fences
                            .iter()
                            .map(|change| check_fence(&domain, &change.fence)),
                    )
                    .chain(
                        intents
                            .iter()
                            .map(|change| check_intent(&change.record, revision)),
                    );
                for check in checked {
                    check.map_err(|violation| wrong(violation.to_string()))?;
                }
            }
        }
        self.layer.fold(effect);
        self.layer.set_last_lsn(lsn.get());
        self.revision = revision;
        Ok(())
    }

    fn domain(&self, id: DomainId) -> Option<Arc<Domain>> {
        self.domains.by_id(id).cloned()
    }
}
