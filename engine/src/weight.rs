//! What rows take in memory: one estimate, which errs high, for every bound that counts them.

use highwater_core::{Fence, FenceChange, Guard, Metadata, Record, RecordChange};

/// What a row takes beside its bytes: list node, counts, pointers.
const ROW_OVERHEAD_BYTES: usize = 256;
/// What a label takes beside its name and value: two strings and its share of a sparse tree.
const LABEL_OVERHEAD_BYTES: usize = 128;
/// What the first label takes beside that: the node of the tree.
const LABELS_OVERHEAD_BYTES: usize = 640;

/// A row of this name with this record; `None` for one that doesn't exist.
pub(crate) fn of_row(name: &[u8], record: Option<&Record>) -> usize {
    let content = record.map_or(0, |record| {
        record.value.as_bytes().len() + of_metadata(&record.metadata)
    });
    ROW_OVERHEAD_BYTES + name.len() + content
}

/// Metadata, beside what holds it.
pub(crate) fn of_metadata(metadata: &Metadata) -> usize {
    let labels = match metadata.labels().len() {
        0 => 0,
        count => LABELS_OVERHEAD_BYTES + count * LABEL_OVERHEAD_BYTES,
    };
    metadata.bytes() + labels
}

/// The change of a record.
pub(crate) fn of_record_change(change: &RecordChange) -> usize {
    of_row(change.key.as_bytes(), change.record.as_deref())
}

/// The fence of a guard; `None` where there is none.
pub(crate) fn of_fence(guard: &Guard, fence: Option<&Fence>) -> usize {
    let holder = fence.map_or(0, |fence| fence.holder.as_bytes().len());
    ROW_OVERHEAD_BYTES + guard.as_bytes().len() + holder
}

/// The change of a fence.
pub(crate) fn of_fence_change(change: &FenceChange) -> usize {
    of_fence(&change.guard, Some(&change.fence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater_core::{Generation, Metageneration, Revision, Value};

    fn record(value: &[u8], metadata: Metadata) -> Record {
        Record {
            generation: Generation::new((1 << 48) | 9).unwrap(),
            metageneration: Metageneration::FIRST,
            changed_at: Revision::new((1 << 48) | 9).unwrap(),
            written_under: None,
            value: Value::new(value).unwrap(),
            metadata,
        }
    }

    #[test]
    fn every_byte_that_a_caller_sends_counts() {
        let bare = of_row(b"k", None);
        assert!(of_row(&[b'k'; 1_024], None) >= bare + 1_023);
        let empty = record(b"", Metadata::default());
        let valued = record(&[7; 5_000], Metadata::default());
        assert!(of_row(b"k", Some(&valued)) >= of_row(b"k", Some(&empty)) + 5_000);
        let mut metadata = Metadata::default();
        for number in 0..64 {
            let name = format!("{number:0128}");
            metadata = metadata.with_label(&name, &"v".repeat(1_024)).unwrap();
        }
        let labelled = record(b"", metadata);
        assert!(of_row(b"k", Some(&labelled)) >= of_row(b"k", Some(&empty)) + 64 * (128 + 1_024));
    }
}
