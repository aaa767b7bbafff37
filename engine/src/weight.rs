//! What rows take in memory: one estimate, which errs high, for every bound that counts them.

use highwater_core::{
    EndCause, Fence, FenceChange, Grant, Guard, GuardReceipt, IntentId, IntentRecord, IntentState,
    Lease, LeaseReceipt, LeaseRecord, Metadata, Mutation, Receipt, Record, RecordChange,
};

/// What a row takes beside its bytes: list node, counts, pointers.
const ROW_OVERHEAD_BYTES: usize = 256;
/// What a part of a receipt or of a binding takes beside its bytes.
const PART_OVERHEAD_BYTES: usize = 256;
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

/// An intent; `None` where there is none. What versions of it share counts for each.
pub(crate) fn of_intent(id: &IntentId, record: Option<&IntentRecord>) -> usize {
    let content = record.map_or(0, |record| {
        let binding = record.binding.as_deref().map_or(0, |binding| {
            let parts = binding.work.inputs.len() + 3;
            let holder = binding.authority.holder().as_bytes().len();
            binding.work.bytes() + holder + parts * PART_OVERHEAD_BYTES
        });
        let owner = match &record.state {
            IntentState::Indeterminate { owner, .. } => owner.as_bytes().len(),
            IntentState::Open | IntentState::Ended(_) => 0,
        };
        let steps: usize = record
            .steps
            .iter()
            .map(|step| of_receipt(&step.receipt))
            .sum();
        binding + owner + steps
    });
    ROW_OVERHEAD_BYTES + id.as_bytes().len() + content
}

/// A receipt that is kept.
fn of_receipt(receipt: &Receipt) -> usize {
    let fence = |fence: &Fence| fence.holder.as_bytes().len();
    let guard = |guard: &GuardReceipt| {
        let previous = guard.previous.as_ref().map_or(0, fence);
        guard.guard.as_bytes().len() + fence(&guard.fence) + previous
    };
    let guards: usize = receipt.guards.iter().map(guard).sum();
    let inputs: usize = receipt.inputs.iter().map(|i| i.key.as_bytes().len()).sum();
    let writes: usize = receipt.writes.iter().map(|w| w.key.as_bytes().len()).sum();
    let lease = |leased: &LeaseReceipt| {
        let cause = |cause: &Option<EndCause>| match cause {
            Some(EndCause::Revoked { by }) => by.as_bytes().len(),
            _ => 0,
        };
        let causes = cause(&leased.ended) + cause(&leased.replaced);
        leased.guard.as_bytes().len() + leased.lease.holder.as_bytes().len() + causes
    };
    let leases: usize = receipt.leases.iter().map(lease).sum();
    let parts = receipt.guards.len() + receipt.inputs.len() + receipt.writes.len();
    let parts = parts + 2 * receipt.leases.len();
    ROW_OVERHEAD_BYTES + guards + inputs + writes + leases + parts * PART_OVERHEAD_BYTES
}

/// What is stored of a guard's leases; `None` where there is nothing.
pub(crate) fn of_leases(guard: &Guard, record: Option<&LeaseRecord>) -> usize {
    let content = record.map_or(0, |record| {
        let lease = |lease: &Lease| PART_OVERHEAD_BYTES + lease.holder.as_bytes().len();
        let grant = |grant: &Grant| PART_OVERHEAD_BYTES + grant.holder.as_bytes().len();
        let grants: usize = record.grants.iter().map(grant).sum();
        let current = record.current.as_deref().map_or(0, lease);
        let ended = record.last_end.as_ref().map_or(0, |end| {
            let by = match &end.cause {
                EndCause::Revoked { by } => by.as_bytes().len(),
                _ => 0,
            };
            lease(&end.lease) + by
        });
        grants + current + ended
    });
    ROW_OVERHEAD_BYTES + guard.as_bytes().len() + content
}
/// A mutation of a lease, beside itself.
pub(crate) fn of_leasing(mutation: &Mutation) -> usize {
    let guard = mutation.named_guard();
    let guard = guard.map_or(0, |guard| guard.as_bytes().len());
    let name = match mutation {
        Mutation::Acquire { holder, .. } => holder.as_bytes().len(),
        Mutation::Revoke { by, .. } => by.as_bytes().len(),
        _ => 0,
    };
    PART_OVERHEAD_BYTES + guard + name
}

/// The change of a fence.
pub(crate) fn of_fence_change(change: &FenceChange) -> usize {
    of_fence(&change.guard, Some(&change.fence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater_core::{
        Admission, Authority, Binding, Commit, CreateDomain, DestinationId, Digest, DomainName,
        EpochMark, Generation, Incarnation, IncarnationMark, IncarnationNumber, Key, Limits,
        Metageneration, Policy, Revision, State, Step, Value, Verdict, Work,
    };

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

    #[test]
    fn an_intent_counts_its_receipts_and_its_binding() {
        let id = IntentId::new("i").unwrap();
        let key = |at: usize| Key::new(format!("{at:01000}")).unwrap();
        let mut commit =
            Commit::new(DomainName::new("d").unwrap()).for_intent(id.clone(), Step::FIRST);
        for at in 0..50 {
            commit = commit.put(key(at), Value::new("").unwrap());
        }
        let number = IncarnationNumber::FIRST;
        let incarnation = Incarnation::new(number, IncarnationMark::new(1));
        let mut state = State::new(DestinationId::new([1; 16]), incarnation, Limits::default())
            .with_digest(|_| Digest::new([7; 32]));
        let open = Policy::default().with_admission(Admission::Open);
        let create = CreateDomain::new(DomainName::new("d").unwrap(), open, EpochMark::new(1));
        let domain = state.create_domain(&create).unwrap().id;
        assert!(matches!(state.commit(&commit), Verdict::Accepted(_)));
        let record = state.intent(domain, &id).unwrap();
        let bare = of_intent(&id, None);
        let stepped = of_intent(&id, Some(record));
        assert!(stepped >= bare + 50 * 1_000, "{stepped}");
        let mut bound = IntentRecord::clone(record);
        let work = Work::under(Guard::new(vec![b'g'; 1_000]).unwrap());
        let authority = Authority::parse("1.0000000000000001/1@a").unwrap();
        bound.binding = Some(std::sync::Arc::new(Binding { work, authority }));
        assert!(of_intent(&id, Some(&bound)) >= stepped + 1_000);
    }
}
