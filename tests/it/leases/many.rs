//! Many leases at once, and many who want one.

use super::*;

/// Thousands of leases end in one moment, beside one that is renewed and one who writes.
#[test]
fn a_mass_of_lapsing_leases_starves_nobody() {
    let many = scale("HIGHWATER_LEASES", 3_000);
    let disk = SimDisk::default();
    let mut config = tight();
    config.queue_commits = 256;
    let store = open(&disk, &config);
    store.create_domain(domain("d"), usual(), None).unwrap();
    let alive = acquire(&store, "alive", "a", 20_000).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let renewing = thread::spawn({
        let (store, stop, alive) = (store.clone(), Arc::clone(&stop), alive.clone());
        move || {
            let mut renewals = 0;
            while !stop.load(Ordering::SeqCst) {
                renew(&store, "alive", &alive).unwrap();
                renewals += 1;
                thread::park_timeout(Duration::from_millis(20));
            }
            renewals
        }
    });
    for part in (0..many).collect::<Vec<_>>().chunks(64) {
        let mut commit = Commit::new(domain("d"));
        for number in part {
            commit = commit.with(Mutation::Acquire {
                guard: guard(&format!("mass/{number}")),
                holder: Holder::new("m").unwrap(),
                ttl: Ttl::new(3_000).unwrap(),
                seal: true,
                supersede: false,
            });
        }
        store.commit(commit).unwrap();
    }
    let begun = Instant::now();
    let mut written = 0_u64;
    while store.status().leases > 1 {
        store.commit(put(&granted(&alive).0, "alive")).unwrap();
        written += 1;
        assert!(
            begun.elapsed() < LIMIT,
            "{} are left",
            store.status().leases
        );
    }
    stop.store(true, Ordering::SeqCst);
    assert!(renewing.join().unwrap() > 0 && written > 0);
    for number in 0..many {
        let record = stored(&store, &format!("mass/{number}"));
        assert!(record.current.is_none());
        assert_eq!(record.last_end.as_ref().unwrap().cause, EndCause::Expired);
    }
    assert_eq!(
        stored(&store, "alive").current.as_ref().unwrap().id,
        granted(&alive).1
    );
}

/// Many contend, the store is killed again and again: no term is ever granted twice, and terms rise
/// in the order of the grants.
#[test]
fn no_two_grants_are_of_one_term_whatever_happens() {
    let (mut disk, mut store) = make(usual());
    let mut last = [0; 4];
    let mut seen = BTreeSet::new();
    for round in 0..scale("HIGHWATER_LEASE_ROUNDS", 12) {
        let contenders: Vec<_> = (0..6)
            .map(|number| {
                let store = store.clone();
                thread::spawn(move || {
                    let mut grants = Vec::new();
                    for turn in 0..20_usize {
                        let place = (turn + number) % 4;
                        let name = format!("g{place}");
                        let request = wanted(&name, &format!("h{number}"), LONG);
                        let Ok(receipt) = store.acquire(request, Duration::from_millis(5)) else {
                            continue;
                        };
                        grants.push((receipt.revision.get(), place, sequence(&receipt)));
                        if turn % 5 != 4 {
                            release(&store, &name, &receipt).unwrap();
                        }
                    }
                    grants
                })
            })
            .collect();
        let mut grants: Vec<_> = contenders
            .into_iter()
            .flat_map(|contender| contender.join().unwrap())
            .collect();
        grants.sort_unstable();
        for (_, place, sequence) in grants {
            assert!(seen.insert((place, sequence)), "granted twice");
            assert!(sequence > last[place], "{sequence} after {}", last[place]);
            last[place] = sequence;
        }
        for place in 0..4 {
            let revoke = Mutation::Revoke {
                guard: guard(&format!("g{place}")),
                lease: None,
                by: Owner::new("test").unwrap(),
            };
            let verdict = store.commit(Commit::new(domain("d")).with(revoke));
            assert!(verdict.is_ok() || code(verdict) == "LeaseGone");
        }
        if round % 2 == 0 {
            (disk, store) = killed(&disk);
        } else {
            store.close().unwrap();
            store = open(&disk, &tight());
        }
    }
    assert!(seen.len() > 20, "{} grants", seen.len());
}
