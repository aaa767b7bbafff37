//! What the one who judges does with the state: fetches from it, and folds into it.

use std::sync::Arc;

use highwater_core::{Change, Domain, Effect, Footprint, Revision, View};

use crate::base::{Base, PREFIX_ROWS_MAX};
use crate::error::StorageError;
use crate::shared::{HotRow, Writer};
use crate::weight;

impl Writer {
    /// Makes an effect part of the state that the next request is judged on.
    pub(crate) fn fold(&mut self, effect: &Effect) {
        let revision = effect.revision();
        self.revision = revision;
        let layer = Arc::clone(&self.group.layer);
        if let Change::LeaseClock { now_ms, opened } = effect.change() {
            layer.note_clock(*now_ms, *opened);
        }
        if let Change::Commit {
            domain,
            records,
            fences,
            intents,
            leases,
        } = effect.change()
        {
            for change in leases {
                layer.lend(*domain, change, revision);
                let bytes = weight::of_leases(&change.guard, Some(&change.record));
                let name = (*domain, change.guard.clone());
                let record = Some(Arc::clone(&change.record));
                self.hot_leases.put(name, record, bytes);
            }
            for change in records {
                let name = (*domain, change.key.clone());
                let known = self.hot_records.get(&name).and_then(|row| row.slot.take());
                let slot = layer.put(*domain, change, revision, known);
                let row = HotRow {
                    record: change.record.clone(),
                    slot: Some(slot),
                };
                let bytes = weight::of_record_change(change);
                self.hot_records.put(name, row, bytes);
            }
            for change in fences {
                layer.raise(*domain, change, revision);
                let bytes = weight::of_fence_change(change);
                let name = (*domain, change.guard.clone());
                self.hot_fences.put(name, Some(change.fence.clone()), bytes);
            }
            for change in intents {
                layer.note(*domain, change, revision);
                let bytes = weight::of_intent(&change.id, Some(&change.record));
                let name = (*domain, change.id.clone());
                let record = Some(Arc::clone(&change.record));
                self.hot_intents.put(name, record, bytes);
            }
        }
        layer.advance(revision);
    }
}

/// Fetches what a decision needs: from the hot rows, else from the layers and the index.
pub(crate) fn fetch(
    writer: &mut Writer,
    base: &Base,
    domain: &Domain,
    needs: &Footprint,
    view: &mut View,
) -> Result<(), StorageError> {
    let at = base.at(Revision::MAX);
    for guard in &needs.guards {
        let name = (domain.id, guard.clone());
        let fence = match writer.hot_fences.get(&name) {
            Some(fence) => fence.clone(),
            None => {
                let fence = at.fence(domain, guard)?;
                let bytes = weight::of_fence(guard, fence.as_ref());
                writer.hot_fences.put(name, fence.clone(), bytes);
                fence
            }
        };
        view.fences.push((guard.clone(), fence));
    }
    for need in &needs.keys {
        let name = (domain.id, need.key.clone());
        let record = match writer.hot_records.get(&name) {
            Some(row) => row.record.clone(),
            None => {
                let record = at.record(domain.id, &need.key)?;
                let bytes = weight::of_row(need.key.as_bytes(), record.as_deref());
                let row = HotRow {
                    record: record.clone(),
                    slot: None,
                };
                writer.hot_records.put(name, row, bytes);
                record
            }
        };
        view.keys
            .push((need.key.clone(), at.key_row(domain.id, need, record)?));
    }
    let mut left = PREFIX_ROWS_MAX;
    for need in &needs.prefixes {
        let row = at.prefix_row(domain.id, need, &mut left)?;
        view.prefixes.push((need.prefix.clone(), row));
    }
    for id in &needs.intents {
        let name = (domain.id, id.clone());
        let record = match writer.hot_intents.get(&name) {
            Some(record) => record.clone(),
            None => {
                let record = at.intent(domain.id, id)?;
                let bytes = weight::of_intent(id, record.as_deref());
                writer.hot_intents.put(name, record.clone(), bytes);
                record
            }
        };
        view.intents.push((id.clone(), record));
    }
    for guard in &needs.leases {
        let name = (domain.id, guard.clone());
        let record = match writer.hot_leases.get(&name) {
            Some(record) => record.clone(),
            None => {
                let record = at.lease(domain.id, guard)?;
                let bytes = weight::of_leases(guard, record.as_deref());
                writer.hot_leases.put(name, record.clone(), bytes);
                record
            }
        };
        view.leases.push((guard.clone(), record));
    }
    Ok(())
}
