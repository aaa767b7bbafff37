//! What the pages of the index's file last held, so that one that changed behind our back is never
//! taken for data. redb compares a page with its checksum only when it verifies the whole file, and
//! a lookup in a changed page finds anything or nothing: a fence that isn't found would let an old
//! holder write.
//!
//! The sums are kept in memory: 4 bytes for 4 KiB of the file. They tell a page that was damaged,
//! put in the place of another, or lost by the device when it was written; what was changed while
//! the store was closed is told by the verification at opening, which reads every page and so fills
//! the table.

use parking_lot::RwLock;

/// What one sum covers, in bytes: redb's pages are multiples of it and begin at such.
pub(crate) const PAGE_BYTES: usize = 4_096;

/// The sum of a page whose content isn't known.
const UNKNOWN: u32 = 0;

/// The sums of all whole pages that were read or written.
#[derive(Debug, Default)]
pub(crate) struct Sums(RwLock<Vec<u32>>);

/// The page at this offset isn't what was last read or written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    /// Where the page begins, in bytes.
    pub(crate) offset: u64,
}

fn sum(page: &[u8]) -> u32 {
    crc32fast::hash(page).max(UNKNOWN + 1)
}

/// The whole pages inside of some bytes of the file: the number of the first, and their bytes.
fn whole_pages(offset: u64, bytes: &[u8]) -> (usize, impl Iterator<Item = &[u8]>) {
    let page_bytes = PAGE_BYTES as u64;
    let begin = offset.next_multiple_of(page_bytes);
    let skipped = usize::try_from(begin - offset).unwrap_or(usize::MAX);
    let rest = bytes.get(skipped..).unwrap_or_default();
    let first = usize::try_from(begin / page_bytes).unwrap_or(usize::MAX);
    (first, rest.chunks_exact(PAGE_BYTES))
}

impl Sums {
    /// Compares what was read with what is known of it; what isn't known yet is taken on trust.
    ///
    /// # Errors
    ///
    /// [`Changed`] with the first page that isn't what it was.
    pub(crate) fn check(&self, offset: u64, bytes: &[u8]) -> Result<(), Changed> {
        let (first, pages) = whole_pages(offset, bytes);
        let mut new = Vec::new();
        let known = self.0.read();
        for (number, page) in (first..).zip(pages) {
            let sum = sum(page);
            match known.get(number).copied().unwrap_or(UNKNOWN) {
                UNKNOWN => new.push((number, sum)),
                before if before == sum => {}
                _ => {
                    let offset = number as u64 * PAGE_BYTES as u64;
                    return Err(Changed { offset });
                }
            }
        }
        drop(known);
        if !new.is_empty() {
            // Not over what was written since it was read.
            self.set(new, |before| before == UNKNOWN);
        }
        Ok(())
    }

    /// Notes what was written.
    pub(crate) fn written(&self, offset: u64, bytes: &[u8]) {
        let (first, pages) = whole_pages(offset, bytes);
        self.set((first..).zip(pages.map(sum)).collect(), |_| true);
    }

    /// Forgets every page that a write touches, before it is done: it may fail half-way.
    pub(crate) fn forget(&self, offset: u64, len: usize) {
        let page_bytes = PAGE_BYTES as u64;
        let end = offset.saturating_add(len as u64).div_ceil(page_bytes);
        let mut sums = self.0.write();
        let range = usize::try_from(offset / page_bytes).unwrap_or(usize::MAX)
            ..usize::try_from(end).unwrap_or(usize::MAX).min(sums.len());
        if let Some(sums) = sums.get_mut(range) {
            sums.fill(UNKNOWN);
        }
    }

    /// Notes that the file was cut, or grown by zeros.
    pub(crate) fn resized(&self, len: u64) {
        let whole = usize::try_from(len / PAGE_BYTES as u64).unwrap_or(usize::MAX);
        self.0.write().truncate(whole);
    }

    fn set(&self, new: Vec<(usize, u32)>, replaces: impl Fn(u32) -> bool) {
        let mut sums = self.0.write();
        for (number, sum) in new {
            if number >= sums.len() {
                sums.resize(number.saturating_add(1), UNKNOWN);
            }
            if let Some(place) = sums.get_mut(number).filter(|place| replaces(**place)) {
                *place = sum;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 3 * PAGE_BYTES as u64;

    #[test]
    fn a_page_passes_iff_it_is_what_was_last_read_or_written() {
        let sums = Sums::default();
        let mut page = vec![7; 2 * PAGE_BYTES];
        assert_eq!(sums.check(AT, &page), Ok(()), "nothing is known yet");
        assert_eq!(sums.check(AT, &page), Ok(()));
        for bit in 0..page.len() * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            let offset = AT + (bit / 8 / PAGE_BYTES * PAGE_BYTES) as u64;
            assert_eq!(sums.check(AT, &page), Err(Changed { offset }));
            page[bit / 8] ^= 1 << (bit % 8);
        }
        page[5] = 8;
        sums.forget(AT, page.len());
        sums.written(AT, &page);
        assert_eq!(sums.check(AT, &page), Ok(()));
        page[5] = 7;
        assert_eq!(sums.check(AT, &page), Err(Changed { offset: AT }));
    }

    #[test]
    fn a_page_of_zeros_is_known_as_well() {
        let sums = Sums::default();
        sums.written(AT, &[0; PAGE_BYTES]);
        assert_eq!(sums.check(AT, &[0; PAGE_BYTES]), Ok(()));
        assert!(sums.check(AT, &[1; PAGE_BYTES]).is_err());
    }

    #[test]
    fn what_was_touched_in_part_or_cut_off_is_unknown_and_its_neighbours_are_not() {
        let sums = Sums::default();
        let (old, new) = ([1; PAGE_BYTES], [2; PAGE_BYTES]);
        sums.written(0, &old.repeat(4));
        sums.forget(PAGE_BYTES as u64 + 10, 20);
        sums.written(PAGE_BYTES as u64 + 10, &[9; 20]);
        assert!(sums.check(0, &new).is_err());
        assert!(sums.check(PAGE_BYTES as u64, &new).is_ok());
        assert!(sums.check(2 * PAGE_BYTES as u64, &new).is_err());
        sums.resized(2 * PAGE_BYTES as u64);
        assert!(sums.check(2 * PAGE_BYTES as u64, &new).is_ok());
        assert!(sums.check(0, &new).is_err());
    }

    #[test]
    fn a_read_that_covers_pages_in_part_is_compared_where_it_covers_them_whole() {
        let sums = Sums::default();
        sums.written(0, &[1; 3 * PAGE_BYTES]);
        let mut bytes = vec![1; 2 * PAGE_BYTES];
        assert_eq!(sums.check(100, &bytes), Ok(()));
        bytes[0] = 2;
        assert_eq!(
            sums.check(100, &bytes),
            Ok(()),
            "of the first page only a part"
        );
        bytes[PAGE_BYTES] = 2;
        let offset = PAGE_BYTES as u64;
        assert_eq!(sums.check(100, &bytes), Err(Changed { offset }));
    }
}
