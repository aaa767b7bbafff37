//! Waiting in line for a guard.

use highwater_tests::disk::{Fault, Op};

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

/// Whoever waits for a guard that nobody lets go hears at once that nothing is taken any more.
#[test]
fn nobody_waits_for_a_store_that_has_ended() {
    for closes in [true, false] {
        let (disk, store) = make(usual());
        acquire(&store, "job", "a", LONG).unwrap();
        let waiting: Vec<_> = (0..6)
            .map(|number| {
                let store = store.clone();
                let request = wanted("job", &format!("h{number}"), LONG);
                thread::spawn(move || {
                    let begun = Instant::now();
                    let verdict = store.acquire(request, 2 * LIMIT);
                    (verdict, begun.elapsed())
                })
            })
            .collect();
        let begun = Instant::now();
        while store.status().waiting < 6 {
            assert!(begun.elapsed() < LIMIT);
            thread::yield_now();
        }
        if closes {
            store.close().unwrap();
        } else {
            disk.plant(Fault {
                op: Op::SyncData,
                file: "log-",
                nth: 1,
                sticky: true,
            });
            acquire(&store, "other", "a", LONG).unwrap_err();
        }
        for waiting in waiting {
            let (verdict, waited) = waiting.join().unwrap();
            assert!(waited < LIMIT, "it waited to its own end");
            match verdict.unwrap_err() {
                Error::Closed => assert!(closes),
                Error::Indeterminate => assert!(!closes),
                error => assert_eq!(code::<()>(Err(error)), "Poisoned"),
            }
        }
        assert_eq!(store.status().waiting, 0);
    }
}

/// One who gives up in its turn leaves that to the next.
#[test]
fn a_place_that_is_given_up_passes_its_call_on() {
    let (_, store) = make(usual());
    let a = acquire(&store, "job", "a", LONG).unwrap();
    let lines: Vec<_> = (0..50)
        .map(|number| store.line_up(wanted("job", &format!("h{number}"), LONG)))
        .collect::<Result<_, _>>()
        .unwrap();
    let last = thread::spawn({
        let store = store.clone();
        move || store.acquire(wanted("job", "last", LONG), LIMIT)
    });
    let begun = Instant::now();
    while store.status().waiting < 51 {
        assert!(begun.elapsed() < LIMIT);
        thread::yield_now();
    }
    release(&store, "job", &a).unwrap();
    drop(lines);
    assert_eq!(sequence(&last.join().unwrap().unwrap()), 2);
    assert_eq!(store.status().waiting, 0);
}

/// The opening needs no data: a full disk takes what is under a lease and frees room, from the
/// first commit on.
#[test]
fn a_store_that_is_opened_on_a_full_disk_goes_by_its_leases() {
    let strict = usual().with_terms(Terms::Issued).with_strict(true);
    let (disk, store) = make(strict);
    let a = granted(&acquire(&store, "job", "a", LONG).unwrap()).0;
    store.commit(put(&a, "job")).unwrap();
    store.close().unwrap();
    let store = open(&disk, &tight());
    disk.set_budget(Some(disk.used()));
    let delete = Commit::new(domain("d")).under(a);
    store
        .commit(delete.delete(Key::new("job").unwrap()))
        .unwrap();
    assert_eq!(code(acquire(&store, "job", "b", LONG)), "LeaseHeld");
}
