//! Following leases.

use highwater::{KeyRange, Revision, Watch, WatchChange, WatchRequest};

use super::*;

fn watch(store: &Store, fences: bool, leases: bool, after: Revision) -> Watch {
    let (domain, range, after) = (domain("d"), KeyRange::all(), Some(after));
    store
        .watch(WatchRequest {
            domain,
            range,
            fences,
            leases,
            after,
        })
        .unwrap()
}

/// The changes of the next commit.
fn next(watch: &mut Watch) -> (Revision, Vec<WatchChange>) {
    let event = watch.next_timeout(LIMIT).unwrap().expect("an event");
    (event.revision, event.changes)
}

/// The record of an event that is about one lease alone.
fn leased((at, mut changes): (Revision, Vec<WatchChange>)) -> (Revision, Arc<LeaseRecord>) {
    assert_eq!(changes.len(), 1, "{changes:?}");
    match changes.remove(0) {
        WatchChange::Leased { guard: of, record } => {
            assert_eq!(of, guard("job"));
            (at, record)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn grants_renewals_and_each_end_are_told_and_nothing_else() {
    let (_, store) = make(usual());
    let start = store.revision();
    let granted_at = acquire(&store, "job", "a", LONG).unwrap();
    let renewed = renew(&store, "job", &granted_at).unwrap();
    store.commit(put(&granted(&granted_at).0, "job")).unwrap();
    let released = release(&store, "job", &granted_at).unwrap();
    acquire(&store, "job", "b", SHORT).unwrap();
    assert_eq!(ended(&store, "job"), EndCause::Expired);

    let mut watching = watch(&store, false, true, start);
    let (at, record) = leased(next(&mut watching));
    assert_eq!(at, granted_at.revision);
    let lease = record.current.as_ref().unwrap();
    assert_eq!((lease.id, lease.renewed_at), (granted(&granted_at).1, at));
    let (at, record) = leased(next(&mut watching));
    assert_eq!(at, renewed.revision);
    assert_eq!(record.current.as_ref().unwrap().renewed_at, at);
    let (_, written) = next(&mut watching);
    assert!(matches!(written[..], [WatchChange::Put { .. }]));
    let (at, record) = leased(next(&mut watching));
    assert_eq!((at, &record.current), (released.revision, &None));
    let end = record.last_end.as_ref().unwrap();
    assert_eq!((&end.cause, end.at), (&EndCause::Released, at));
    let (_, record) = leased(next(&mut watching));
    assert_eq!(record.current.as_ref().unwrap().holder.as_bytes(), b"b");
    let (_, record) = leased(next(&mut watching));
    assert_eq!(record.last_end.as_ref().unwrap().cause, EndCause::Expired);
    assert!(watching.next_timeout(Duration::ZERO).unwrap().is_none());
}

#[test]
fn who_does_not_ask_for_leases_hears_of_fences_and_keys_alone() {
    let (_, store) = make(usual());
    let start = store.revision();
    let receipt = acquire(&store, "job", "a", LONG).unwrap();
    renew(&store, "job", &receipt).unwrap();
    let mut fences = watch(&store, true, false, start);
    let (at, changes) = next(&mut fences);
    assert_eq!(at, receipt.revision);
    assert!(matches!(changes[..], [WatchChange::Fenced { .. }]));
    assert!(fences.next_timeout(Duration::ZERO).unwrap().is_none());
    let mut keys = watch(&store, false, false, start);
    assert!(keys.next_timeout(Duration::ZERO).unwrap().is_none());
    let (_, both) = next(&mut watch(&store, true, true, start));
    let fence_then_lease = matches!(
        both[..],
        [WatchChange::Fenced { .. }, WatchChange::Leased { .. }]
    );
    assert!(fence_then_lease, "{both:?}");
}
