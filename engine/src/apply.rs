//! Writes one layer into the index: all its effects and how far they go, in one transaction.

use std::sync::Arc;

use highwater_core::codec::{encode_domain, encode_fence, encode_intent, encode_record};
use highwater_core::{Domain, Revision};
use redb::{ReadableTable as _, Table, WriteTransaction};

use crate::error::StorageError;
use crate::faults::Failed;
use crate::index::Index;
use crate::layer::Layer;
use crate::tables::{
    Applied, DELETION_ORDER, DELETIONS, DOMAINS, FENCES, INTENTS, RECORDS, STATE, STATE_ROW,
    name_in, order_key, row_error, row_key,
};

/// What a call of redb returns.
type Redb<T = ()> = Result<T, Failed>;

/// Applies a layer on top of what the index holds, and forgets the oldest deletions above
/// `deletions_max`. Either all of it is durable afterwards, or nothing changed.
///
/// # Errors
///
/// [`StorageError`] with what redb said.
pub(crate) fn apply(
    index: &Index,
    layer: &Layer,
    domains: &[Arc<Domain>],
    mut applied: Applied,
    deletions_max: u64,
) -> Result<Applied, StorageError> {
    index.call("checkpoint", |database| {
        let mut transaction = database.begin_write()?;
        // The allocator's state is saved with the commit, so that opening after a crash needn't
        // rebuild it.
        transaction.set_quick_repair(true);
        put_domains(&transaction, domains)?;
        put_records(&transaction, layer, &mut applied.deletions)?;
        put_fences(&transaction, layer)?;
        put_intents(&transaction, layer)?;
        forget(&transaction, &mut applied, deletions_max)?;
        transaction
            .open_table(STATE)?
            .insert(STATE_ROW, applied.encode().as_slice())?;
        transaction.commit()?;
        Ok(applied)
    })
}

fn put_domains(transaction: &WriteTransaction, domains: &[Arc<Domain>]) -> Redb {
    let mut table = transaction.open_table(DOMAINS)?;
    let mut row = Vec::new();
    for domain in domains {
        row.clear();
        encode_domain(domain, &mut row);
        table.insert(domain.id.get(), row.as_slice())?;
    }
    Ok(())
}

fn put_records(transaction: &WriteTransaction, layer: &Layer, deletions: &mut u64) -> Redb {
    let mut records = transaction.open_table(RECORDS)?;
    let mut deleted = transaction.open_table(DELETIONS)?;
    let mut order = transaction.open_table(DELETION_ORDER)?;
    let mut value = Vec::new();
    for (domain, key, version) in layer.newest_records() {
        let row = row_key(domain, key.as_bytes());
        if let Some(record) = &version.record {
            value.clear();
            encode_record(record, &mut value);
            records.insert(row.as_slice(), value.as_slice())?;
        } else {
            records.remove(row.as_slice())?;
            note_deletion(&mut deleted, &mut order, &row, version.revision, deletions)?;
        }
    }
    Ok(())
}

/// Remembers a deletion in place of an earlier one of the same key. A key that is written again
/// keeps its old deletion until that is forgotten: it lies below the record's own last change.
fn note_deletion(
    deleted: &mut Table<'_, &'static [u8], u64>,
    order: &mut Table<'_, &'static [u8], ()>,
    row: &[u8],
    revision: Revision,
    deletions: &mut u64,
) -> Redb {
    let earlier = deleted.insert(row, revision.get())?.map(|old| old.value());
    match earlier {
        Some(earlier) => {
            let wrong = || row_error("deletions", row, "its revision is none");
            let earlier = Revision::new(earlier).ok_or_else(wrong)?;
            order.remove(order_key(earlier, row).as_slice())?;
        }
        None => *deletions = deletions.saturating_add(1),
    }
    order.insert(order_key(revision, row).as_slice(), ())?;
    Ok(())
}

fn put_fences(transaction: &WriteTransaction, layer: &Layer) -> Redb {
    let mut table = transaction.open_table(FENCES)?;
    let mut value = Vec::new();
    for (domain, guard, fence) in layer.newest_fences() {
        value.clear();
        encode_fence(&fence, &mut value);
        table.insert(
            row_key(domain, guard.as_bytes()).as_slice(),
            value.as_slice(),
        )?;
    }
    Ok(())
}

fn put_intents(transaction: &WriteTransaction, layer: &Layer) -> Redb {
    let mut table = transaction.open_table(INTENTS)?;
    let mut value = Vec::new();
    for (domain, id, record) in layer.newest_intents() {
        value.clear();
        encode_intent(&record, &mut value);
        table.insert(row_key(domain, id.as_bytes()).as_slice(), value.as_slice())?;
    }
    Ok(())
}

/// Forgets the oldest deletions above the bound, and raises the floor below which nothing can be
/// said, in the same transaction.
fn forget(transaction: &WriteTransaction, applied: &mut Applied, max: u64) -> Redb {
    let mut deleted = transaction.open_table(DELETIONS)?;
    let mut order = transaction.open_table(DELETION_ORDER)?;
    loop {
        let first = order.first()?.map(|(name, _)| name.value().to_vec());
        let Some(name) = first else { break };
        let split = name.split_first_chunk();
        let found = split.and_then(|(revision, row)| {
            let revision = Revision::new(u64::from_be_bytes(*revision))?;
            (!name_in(row).is_empty()).then_some((revision, row))
        });
        let wrong = || row_error("deletion_order", &name, "it has no revision or no key");
        let (revision, row) = found.ok_or_else(wrong)?;
        // Those of one commit go together: what is said of a revision is said of all of it.
        if applied.deletions <= max && revision > applied.remembers_since {
            break;
        }
        order.remove(name.as_slice())?;
        deleted.remove(row)?;
        applied.remembers_since = applied.remembers_since.max(revision);
        applied.deletions = applied.deletions.saturating_sub(1);
    }
    Ok(())
}
