//! The index's tables and the keys of their rows. `docs/FORMAT.md` is the reference.

use std::fmt::Display;
use std::sync::Arc;

use highwater_core::limits::OPENINGS_KEPT;
use highwater_core::{DomainId, KeyRange, LeaseClock, Revision, escape};
use redb::TableDefinition;

use crate::error::StorageError;

/// Single rows: [`STATE_ROW`] and [`CLOCK_ROW`].
pub(crate) const STATE: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("state");
/// Domain number → domain.
pub(crate) const DOMAINS: TableDefinition<'static, u32, &[u8]> = TableDefinition::new("domains");
/// Domain number and key → record.
pub(crate) const RECORDS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("records");
/// Domain number and guard → fence.
pub(crate) const FENCES: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("fences");
/// Domain number and intent → what is stored of it. A file without it has no intents.
pub(crate) const INTENTS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("intents");
/// Domain number and guard → what is stored of its leases. A file without it has none.
pub(crate) const LEASES: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("leases");
/// Domain number and key → revision of the deletion.
pub(crate) const DELETIONS: TableDefinition<'static, &[u8], u64> =
    TableDefinition::new("deletions");
/// Revision of the deletion, domain number and key → nothing: the order of forgetting.
pub(crate) const DELETION_ORDER: TableDefinition<'static, &[u8], ()> =
    TableDefinition::new("deletion_order");

/// The name of the row of [`STATE`] that says how far the log has been applied.
pub(crate) const STATE_ROW: &str = "applied";
/// The name of its row that holds the lease clock. A file without it has none.
pub(crate) const CLOCK_ROW: &str = "lease_clock";

/// The version of the tables' layout, first byte of the state row.
const VERSION: u8 = 1;
const STATE_BYTES: usize = 1 + 16 + 2 + 8 + 8 + 8 + 8 + 8;

/// How far the index has come: all effects up to `revision` are in it, and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    /// The destination's id.
    pub(crate) destination: highwater_core::DestinationId,
    /// The incarnation.
    pub(crate) incarnation: highwater_core::Incarnation,
    /// The last effect's revision.
    pub(crate) revision: Revision,
    /// The raw number of the log frame that holds it.
    pub(crate) lsn: u64,
    /// From where on every deletion is remembered.
    pub(crate) remembers_since: Revision,
    /// How many deletions are remembered.
    pub(crate) deletions: u64,
}

impl Applied {
    /// The state row.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(STATE_BYTES);
        row.push(VERSION);
        row.extend_from_slice(&self.destination.bytes());
        row.extend_from_slice(&self.incarnation.number().get().to_be_bytes());
        row.extend_from_slice(&self.incarnation.mark().get().to_be_bytes());
        row.extend_from_slice(&self.revision.get().to_be_bytes());
        row.extend_from_slice(&self.lsn.to_be_bytes());
        row.extend_from_slice(&self.remembers_since.get().to_be_bytes());
        row.extend_from_slice(&self.deletions.to_be_bytes());
        row
    }

    /// Reads the state row.
    ///
    /// # Errors
    ///
    /// [`StorageError::Row`] if it isn't one of this version.
    pub(crate) fn decode(row: &[u8]) -> Result<Self, StorageError> {
        use highwater_core::{DestinationId, Incarnation, IncarnationMark, IncarnationNumber};
        let wrong = |detail: &str| StorageError::Row {
            table: "state",
            row: STATE_ROW.into(),
            detail: detail.into(),
        };
        let row: [u8; STATE_BYTES] = row.try_into().map_err(|_| wrong("it has another length"))?;
        let (version, rest) = row.split_at(1);
        if version != [VERSION] {
            return Err(wrong("it has another version"));
        }
        let (destination, rest) = rest.split_at(16);
        let (number, rest) = rest.split_at(2);
        let mut numbers = rest
            .chunks_exact(8)
            .map(|chunk| u64::from_be_bytes(chunk.try_into().unwrap_or([0; 8])));
        let mut next = || numbers.next().unwrap_or(0);
        let destination = destination.try_into().map_err(|_| wrong("the id"))?;
        let number = number.try_into().map(u16::from_be_bytes).unwrap_or(0);
        let number = IncarnationNumber::new(number).ok_or_else(|| wrong("the incarnation"))?;
        let mark = IncarnationMark::new(next());
        let revision = Revision::new(next()).ok_or_else(|| wrong("the revision"))?;
        let lsn = next();
        let remembers_since = Revision::new(next()).ok_or_else(|| wrong("the floor"))?;
        Ok(Self {
            destination: DestinationId::new(destination),
            incarnation: Incarnation::new(number, mark),
            revision,
            lsn,
            remembers_since,
            deletions: next(),
        })
    }
}

/// The row of the lease clock: what it showed, then every opening that matters, each in 8 bytes.
pub(crate) fn encode_clock(clock: &LeaseClock) -> Vec<u8> {
    let times = std::iter::once(&clock.now_ms).chain(clock.openings.iter());
    times.flat_map(|time| time.to_be_bytes()).collect()
}

/// Reads the row of the lease clock.
///
/// # Errors
///
/// [`StorageError::Row`] if its length is wrong or its openings don't rise up to the present.
pub(crate) fn decode_clock(row: &[u8]) -> Result<LeaseClock, StorageError> {
    let wrong = |detail: &str| StorageError::Row {
        table: "state",
        row: CLOCK_ROW.into(),
        detail: detail.into(),
    };
    let chunks = row.chunks_exact(8);
    if !chunks.remainder().is_empty() || row.len() > 8 * (1 + OPENINGS_KEPT) {
        return Err(wrong("it has a wrong length"));
    }
    let mut times = chunks.map(|chunk| u64::from_be_bytes(chunk.try_into().unwrap_or([0; 8])));
    let now_ms = times.next().ok_or_else(|| wrong("it is empty"))?;
    let openings: Arc<[u64]> = times.collect();
    let rises = openings.is_sorted_by(|a, b| a < b);
    if !rises || openings.last().is_some_and(|last| *last > now_ms) {
        return Err(wrong("its openings don't rise up to the present"));
    }
    Ok(LeaseClock { now_ms, openings })
}

/// The key of a row that belongs to a name inside a domain.
pub(crate) fn row_key(domain: DomainId, name: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(4 + name.len());
    key.extend_from_slice(&domain.get().to_be_bytes());
    key.extend_from_slice(name);
    key
}

/// The first row key behind every name of a domain.
fn domain_end(domain: DomainId) -> Vec<u8> {
    domain.get().saturating_add(1).to_be_bytes().to_vec()
}

/// The key of a row of [`DELETION_ORDER`].
pub(crate) fn order_key(revision: Revision, row: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(8 + row.len());
    key.extend_from_slice(&revision.get().to_be_bytes());
    key.extend_from_slice(row);
    key
}

/// The name inside a row key.
pub(crate) fn name_in(row: &[u8]) -> &[u8] {
    row.get(4..).unwrap_or(&[])
}

/// The first and the end of the row keys of a range of names in a domain.
pub(crate) fn row_range(domain: DomainId, range: &KeyRange) -> (Vec<u8>, Vec<u8>) {
    let start = row_key(domain, &range.start);
    let end = range
        .end
        .as_ref()
        .map_or_else(|| domain_end(domain), |end| row_key(domain, end));
    // An empty or inverted range would be a mistake to the index.
    let end = end.max(start.clone());
    (start, end)
}

/// A row that isn't what was written.
pub(crate) fn row_error(table: &'static str, row: &[u8], detail: impl Display) -> StorageError {
    let domain = row.first_chunk().map_or(0, |id| u32::from_be_bytes(*id));
    StorageError::Row {
        table,
        row: format!("{domain}/{}", escape(name_in(row))),
        detail: detail.to_string(),
    }
}
