//! Waiting in line for a guard.

use super::*;

#[test]
fn those_who_wait_get_the_guard_in_the_order_in_which_they_came() {
    let (_, store) = make(usual());
    let first = acquire(&store, "job", "0", LONG).unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let holding = Arc::new(AtomicUsize::new(0));
    let mut waiting = Vec::new();
    for number in 1..=8_usize {
        let (store, order, holding) = (store.clone(), Arc::clone(&order), Arc::clone(&holding));
        let already = store.status().waiting;
        waiting.push(thread::spawn({
            let store = store.clone();
            move || {
                let request = wanted("job", &number.to_string(), LONG);
                let receipt = store.acquire(request, LIMIT).unwrap();
                assert_eq!(holding.fetch_add(1, Ordering::SeqCst), 0, "two hold it");
                order.lock().unwrap().push((number, sequence(&receipt)));
                holding.fetch_sub(1, Ordering::SeqCst);
                release(&store, "job", &receipt).unwrap();
            }
        }));
        let begun = Instant::now();
        while store.status().waiting == already {
            assert!(begun.elapsed() < LIMIT);
            thread::yield_now();
        }
    }
    release(&store, "job", &first).unwrap();
    for waiting in waiting {
        waiting.join().unwrap();
    }
    let order = order.lock().unwrap().clone();
    let expected: Vec<_> = (1..=8_usize).map(|n| (n, n as u64 + 1)).collect();
    assert_eq!(order, expected);
    assert_eq!(store.status().waiting, 0);
}

#[test]
fn who_waits_in_vain_hears_of_the_holder_and_leaves_nothing() {
    let (_, store) = make(usual());
    acquire(&store, "job", "a", LONG).unwrap();
    let before = store.revision();
    for _ in 0..3 {
        let verdict = store.acquire(wanted("job", "b", LONG), Duration::from_millis(20));
        let error = verdict.unwrap_err();
        let observed = &error.rejection().unwrap().observed;
        let current = observed.lease.as_ref().unwrap().record.as_ref().unwrap();
        assert_eq!(current.current.as_ref().unwrap().holder.as_bytes(), b"a");
        assert_eq!(code::<()>(Err(error)), "LeaseHeld");
    }
    assert_eq!(store.status().waiting, 0);
    // The clock is noted while there are leases; nothing else happens.
    assert_eq!(sequence_issued(&store), 1);
    assert!(store.revision() >= before);
}

#[test]
fn who_waits_for_a_lapsing_lease_gets_it_once_it_has_lapsed() {
    let (_, store) = make(usual());
    let a = acquire(&store, "job", "a", SHORT).unwrap();
    let b = store.acquire(wanted("job", "b", LONG), LIMIT).unwrap();
    assert_eq!(sequence(&b), sequence(&a) + 1);
    let ended = stored(&store, "job").last_end.clone().unwrap();
    assert_eq!(ended.cause, EndCause::Expired);
    assert_eq!(ended.lease.id, granted(&a).1);
}
