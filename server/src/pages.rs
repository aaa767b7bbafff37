//! Pages of records, all of one snapshot, each small enough for common clients.

use bytes::Bytes;
use highwater::{Error, Page, Snapshot};
use highwater_core::{Guard, Key, KeyRange};
use highwater_proto::convert::record_to_wire;
use highwater_proto::v1;
use prost::Message;

use crate::options::{PAGE_OVERHEAD_BYTES, ServeOptions};
use crate::token::Listing;

/// What one record adds to a page beside its own encoding: its tag and its length.
const RECORD_FRAMING_BYTES: usize = 8;

const _: () = assert!(PAGE_OVERHEAD_BYTES > 4 * highwater_core::limits::KEY_BYTES_MAX);

/// Which keys are listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Keys {
    /// Those of a range.
    Range(KeyRange),
    /// Those that a guard covers.
    Guard(Guard),
}

/// How pages are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageSize {
    records: usize,
    bytes: usize,
}

impl PageSize {
    /// What a client wishes (0 leaves it to the server), within the server's bounds.
    pub(crate) fn new(wish: u32, options: &ServeOptions) -> Self {
        let max = options.page_records_max;
        let records = match usize::try_from(wish) {
            Ok(0) | Err(_) => max,
            Ok(wish) => wish.min(max),
        };
        Self {
            records,
            bytes: options.page_bytes,
        }
    }

    /// Most records of a page.
    pub(crate) const fn records(self) -> usize {
        self.records
    }
}

/// Goes through a listing page by page. Clones share the snapshot.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    snapshot: Snapshot,
    listing: Listing,
    size: PageSize,
    pages_left: Option<u32>,
    next: Option<Key>,
    is_done: bool,
}

impl Pages {
    /// A listing from `next` on, or from its beginning; at most `pages` pages, 0 for all.
    pub(crate) fn new(
        snapshot: Snapshot,
        listing: Listing,
        size: PageSize,
        pages: u32,
        next: Option<Key>,
    ) -> Self {
        let pages_left = (pages > 0).then_some(pages);
        Self {
            snapshot,
            listing,
            size,
            pages_left,
            next,
            is_done: false,
        }
    }

    /// The next page, read from the store; `None` behind the last. Blocks while the store reads.
    pub(crate) fn read(&mut self) -> Result<Option<v1::ScanResponse>, Error> {
        if self.is_done {
            return Ok(None);
        }
        let domain = &self.listing.domain;
        let (next, limit) = (self.next.as_ref(), self.size.records);
        let page = match &self.listing.keys {
            Keys::Guard(guard) => self.snapshot.scan_guard(domain, guard, next, limit)?,
            Keys::Range(range) => match next {
                None => self.snapshot.scan(domain, range, limit)?,
                Some(next) => {
                    let mut rest = range.clone();
                    rest.start = rest.start.max(next.as_bytes().to_vec());
                    self.snapshot.scan(domain, &rest, limit)?
                }
            },
        };
        Ok(Some(self.take(page)))
    }

    /// The part of a store's page that fits into a message; the rest is read again.
    pub(crate) fn take(&mut self, page: Page) -> v1::ScanResponse {
        let mut records = Vec::with_capacity(page.records.len());
        let mut bytes = PAGE_OVERHEAD_BYTES;
        let mut next = page.next;
        for (key, record) in page.records {
            let wire = record_to_wire(&key, &record);
            bytes = bytes
                .saturating_add(wire.encoded_len())
                .saturating_add(RECORD_FRAMING_BYTES);
            if !records.is_empty() && bytes > self.size.bytes {
                next = Some(key);
                break;
            }
            records.push(wire);
        }
        self.pages_left = self.pages_left.map(|left| left.saturating_sub(1));
        self.is_done = next.is_none() || self.pages_left == Some(0);
        let page_token = next
            .as_ref()
            .map_or_else(Bytes::new, |key| self.listing.token_of(key));
        self.next = next;
        v1::ScanResponse {
            revision: page.revision.get(),
            records,
            page_token,
        }
    }
}
