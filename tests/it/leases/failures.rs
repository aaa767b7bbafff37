//! The ways in which leases go wrong, one test for each: what must be refused then, and what must
//! be on record.

use highwater::{Condition, Effects, Found, Generation, Reconcile};
use highwater_tests::disk::{Fault, Op};

use super::*;

const JOB: &str = "job";

fn value_of(store: &Store) -> Option<(Vec<u8>, Generation)> {
    let found = store.get(&domain("d"), &Key::new(JOB).unwrap()).unwrap();
    found.map(|record| (record.value.as_bytes().to_vec(), record.generation))
}

fn write(authority: &Authority, value: &str) -> Commit {
    Commit::new(domain("d"))
        .under(authority.clone())
        .put(Key::new(JOB).unwrap(), Value::new(value).unwrap())
}

fn revoke(store: &Store) -> Receipt {
    let revoke = Mutation::Revoke {
        guard: guard(JOB),
        lease: None,
        by: Owner::new("operator").unwrap(),
    };
    let commit = Commit::new(domain("d")).with(revoke);
    store.commit(commit).unwrap()
}

fn intent(name: &str) -> IntentId {
    IntentId::new(name).unwrap()
}

fn reconciled(store: &Store, name: &str, by: &Authority) -> Found {
    let question = Reconcile::new(domain("d"), vec![intent(name)]).fencing(guard(JOB), by.clone());
    store.reconcile(&question).unwrap().found.remove(0)
}

#[test]
fn a_delayed_holder_finds_its_successors_fence() {
    let (_, store) = make(usual());
    let a = granted(&acquire(&store, JOB, "a", SHORT).unwrap()).0;
    store.commit(write(&a, "draft")).unwrap();
    let b = store.acquire(wanted(JOB, "b", LONG), LIMIT).unwrap();
    let before = value_of(&store);
    let refused = store.commit(write(&a, "late")).unwrap_err();
    let observed = refused.rejection().unwrap().observed.clone();
    assert_eq!(code::<()>(Err(refused)), "StaleTerm");
    assert_eq!(observed.fence.unwrap().holder.as_bytes(), b"b");
    assert_eq!(value_of(&store), before);
    let record = stored(&store, JOB);
    assert_eq!(record.last_end.as_ref().unwrap().cause, EndCause::Expired);
    assert_eq!(record.current.as_ref().unwrap().id, granted(&b).1);
}

#[test]
fn a_pause_between_the_last_look_at_the_lease_and_the_commit_is_no_gap() {
    let (_, store) = make(usual());
    let a = granted(&acquire(&store, JOB, "a", LONG).unwrap()).0;
    let epoch = store.domain(&domain("d")).unwrap().epochs.current().epoch;
    let clock = store.snapshot().unwrap().lease_clock().unwrap();
    let standing = stored(&store, JOB).standing(&epoch, &clock);
    assert!(matches!(standing, Some(LeaseStanding::Live { .. })));
    // The holder has looked, and stands still here.
    revoke(&store);
    acquire(&store, JOB, "b", LONG).unwrap();
    assert_eq!(code(store.commit(write(&a, "late"))), "StaleTerm");
    assert_eq!(value_of(&store), None);
}

#[test]
fn a_lost_acknowledgement_is_found_by_the_holder_and_by_its_replacement() {
    let (_, store) = make(usual());
    let a = granted(&acquire(&store, JOB, "a", SHORT).unwrap()).0;
    let step = write(&a, "done").for_intent(intent("i"), Step::FIRST);
    let lost = store.commit(step.clone()).unwrap();
    let b = store.acquire(wanted(JOB, "b", LONG), LIMIT).unwrap();
    let found = reconciled(&store, "i", &granted(&b).0);
    assert_eq!(found.finding.effects, Effects::Present);
    let receipt = &found.record.unwrap().steps[0].receipt;
    assert_eq!(
        (receipt.revision, &receipt.writes),
        (lost.revision, &lost.writes)
    );
    let again = store.commit(step).unwrap();
    assert!(again.replayed && again.revision == lost.revision);
    // What was never sent is absent, and stays so for the old holder.
    assert_eq!(
        reconciled(&store, "j", &granted(&b).0).finding.effects,
        Effects::Absent
    );
    let late = write(&a, "twice").for_intent(intent("j"), Step::FIRST);
    assert_eq!(code(store.commit(late)), "StaleTerm");
}

#[test]
fn of_two_replacements_that_race_one_gets_the_guard() {
    let (_, store) = make(usual());
    let mut before = 0;
    for _ in 0..100 {
        let racers: Vec<_> = ["b", "c"]
            .into_iter()
            .map(|holder| {
                let store = store.clone();
                thread::spawn(move || acquire(&store, JOB, holder, LONG))
            })
            .collect();
        let verdicts: Vec<_> = racers
            .into_iter()
            .map(|racer| racer.join().unwrap())
            .collect();
        let (won, lost): (Vec<_>, Vec<_>) = verdicts.into_iter().partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 1));
        let won = won.into_iter().next().unwrap().unwrap();
        assert_eq!(sequence(&won), before + 1, "the loser burned no term");
        before = sequence(&won);
        for lost in lost {
            assert_eq!(code(lost), "LeaseHeld");
        }
        assert_eq!(
            stored(&store, JOB).current.as_ref().unwrap().id,
            granted(&won).1
        );
        release(&store, JOB, &won).unwrap();
    }
}

#[test]
fn a_result_of_an_input_that_has_changed_is_refused() {
    let (_, store) = make(policy(GuardRule::Domain, Admission::Fenced));
    let a = granted(&acquire(&store, "", "a", LONG).unwrap()).0;
    let input = || Key::new("input").unwrap();
    let publish = |text: &str| {
        let commit = Commit::new(domain("d")).under(a.clone());
        store
            .commit(commit.put(input(), Value::new(text).unwrap()))
            .unwrap()
    };
    let read = publish("version 8").writes[0].generation;
    let now = publish("version 9").writes[0].generation;
    let result = |of: Option<Generation>| {
        write(&a, "result").when(Condition::GenerationIs {
            key: input(),
            generation: of,
        })
    };
    let refused = store.commit(result(read)).unwrap_err();
    assert_eq!(refused.rejection().unwrap().observed.generation, now);
    assert_eq!(code::<()>(Err(refused)), "ConditionFailed");
    assert_eq!(value_of(&store), None);
    store.commit(result(now)).unwrap();
}

/// The disk fails under a renewal. Nobody knows then whether it is on record; both are safe.
#[test]
fn a_renewal_whose_outcome_is_unknown_neither_shortens_nor_shares_the_lease() {
    let (disk, store) = make(usual());
    let a = acquire(&store, JOB, "a", LONG).unwrap();
    disk.plant(Fault {
        op: Op::SyncData,
        file: "log-",
        nth: 1,
        sticky: false,
    });
    match renew(&store, JOB, &a) {
        Err(Error::Indeterminate) => {}
        // The clock was just being noted, and met the failure first.
        verdict => assert_eq!(code(verdict), "Poisoned"),
    }
    assert_eq!(code(acquire(&store, JOB, "b", LONG)), "Poisoned");
    drop(store);
    disk.heal();
    let (_, store) = killed(&disk);
    let current = stored(&store, JOB).current.clone().unwrap();
    assert_eq!(current.id, granted(&a).1);
    assert_eq!(code(acquire(&store, JOB, "b", LONG)), "LeaseHeld");
    renew(&store, JOB, &a).unwrap();
}

/// The lease is taken away while its holder writes: what it wrote lies before the next grant, or
/// nowhere.
#[test]
fn a_revocation_while_a_commit_is_in_flight_leaves_an_order() {
    let (_, store) = make(usual());
    let (mut before, mut never) = (0, 0);
    for round in 0..300_u64 {
        let a = granted(&acquire(&store, JOB, "a", LONG).unwrap()).0;
        let text = format!("round {round}");
        let writer = thread::spawn({
            let (store, commit) = (store.clone(), write(&a, &text));
            move || store.commit(commit)
        });
        if round % 3 == 0 {
            thread::yield_now();
        }
        revoke(&store);
        let b = acquire(&store, JOB, "b", LONG).unwrap();
        match writer.join().unwrap() {
            Ok(receipt) => {
                before += 1;
                assert!(receipt.revision < b.revision);
                assert_eq!(value_of(&store).unwrap().0, text.as_bytes());
            }
            verdict => {
                never += 1;
                assert_eq!(code(verdict), "StaleTerm");
                assert_ne!(
                    value_of(&store).map(|found| found.0),
                    Some(text.into_bytes())
                );
            }
        }
        release(&store, JOB, &b).unwrap();
    }
    println!("{before} before the grant, {never} never");
    assert!(before > 0);
}

#[test]
fn a_lease_that_lapses_while_its_commit_is_being_synced_takes_nothing_back() {
    let (disk, store) = make(usual());
    let a = acquire(&store, JOB, "a", 1_000).unwrap();
    disk.hold();
    let writer = thread::spawn({
        let (store, commit) = (store.clone(), write(&granted(&a).0, "in time"));
        move || store.commit(commit)
    });
    disk.wait_for_sync();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1_200) {
        thread::park_timeout(Duration::from_millis(50));
    }
    disk.release();
    let written = writer.join().unwrap().unwrap();
    assert_eq!(ended(&store, JOB), EndCause::Expired);
    let end = stored(&store, JOB).last_end.clone().unwrap();
    assert!(written.revision < end.at);
    assert_eq!(value_of(&store).unwrap().0, b"in time");
}

#[test]
fn a_holder_that_restarted_under_the_same_name_is_not_the_one_from_before() {
    let (_, store) = make(usual());
    let first = acquire(&store, JOB, "a", LONG).unwrap();
    assert_eq!(code(acquire(&store, JOB, "a", LONG)), "LeaseHeld");
    let mut anew = wanted(JOB, "a", LONG);
    anew.supersede = true;
    let second = store.commit(anew.commit()).unwrap();
    assert_eq!(sequence(&second), 2);
    assert_eq!(
        stored(&store, JOB).last_end.as_ref().unwrap().cause,
        EndCause::Superseded
    );
    assert_eq!(
        code(store.commit(write(&granted(&first).0, "late"))),
        "StaleTerm"
    );
    assert_eq!(code(release(&store, JOB, &first)), "LeaseGone");
    store.commit(write(&granted(&second).0, "now")).unwrap();
    let mut other = wanted(JOB, "b", LONG);
    other.supersede = true;
    assert_eq!(code(store.commit(other.commit())), "LeaseHeld");
}

#[test]
fn after_a_failback_the_terms_of_before_stay_fenced_out() {
    let (_, store) = make(usual());
    let mut terms = Vec::new();
    for holder in ["a", "b", "a"] {
        let receipt = acquire(&store, JOB, holder, LONG).unwrap();
        store.commit(write(&granted(&receipt).0, holder)).unwrap();
        release(&store, JOB, &receipt).unwrap();
        terms.push(granted(&receipt).0);
    }
    for old in terms.iter().take(2) {
        assert_eq!(code(store.commit(write(old, "late"))), "StaleTerm");
    }
    store.commit(write(&terms[2], "back")).unwrap();
}

/// Letting go of a lease needs no fence; a step of an intent in the same commit does.
#[test]
fn who_is_fenced_out_takes_no_step_by_letting_go() {
    let (_, store) = make(usual());
    let receipt = acquire(&store, JOB, "a", LONG).unwrap();
    let (a, lease) = granted(&receipt);
    // Another coordinator's term comes above, while the lease is live.
    let epoch = store.domain(&domain("d")).unwrap().epochs.current().epoch;
    let b = Authority::parse(&format!("{epoch}/2@b")).unwrap();
    assert_eq!(reconciled(&store, "i", &b).finding.effects, Effects::Absent);
    let guard = guard(JOB);
    let late = put(&a, "elsewhere")
        .with(Mutation::Release { guard, lease })
        .for_intent(intent("i"), Step::FIRST);
    assert_eq!(code(store.commit(late)), "StaleTerm");
    assert_eq!(reconciled(&store, "i", &b).finding.effects, Effects::Absent);
    let elsewhere = Key::new("elsewhere").unwrap();
    assert!(store.get(&domain("d"), &elsewhere).unwrap().is_none());
    release(&store, JOB, &receipt).unwrap();
}

/// On a full disk there is room left for what frees some. A lease that nobody touches takes none of
/// it, however long that lasts.
#[test]
fn on_a_full_disk_the_clock_takes_nothing_of_the_room_that_is_kept_back() {
    let (disk, store) = make(policy(GuardRule::Domain, Admission::Fenced));
    let a = granted(&acquire(&store, "", "a", LONG).unwrap()).0;
    store.close().unwrap();
    let store = open(&disk, &tight());
    let key = |number: usize| Key::new(format!("k/{number:05}")).unwrap();
    let fill = |number: usize| {
        let commit = Commit::new(domain("d")).under(a.clone());
        store.commit(commit.put(key(number), Value::new(vec![7; 3_000]).unwrap()))
    };
    fill(0).unwrap();
    disk.set_budget(Some(disk.used()));
    let refused = (1..1_000).find_map(|number| fill(number).err());
    assert_eq!(code::<()>(Err(refused.unwrap())), "DiskFull");
    // What was asked for before is answered by now.
    while fill(1_000).is_ok() {}
    let before = store.revision();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(3_500) {
        thread::park_timeout(Duration::from_millis(50));
        assert_eq!(store.revision(), before);
    }
    let delete = Commit::new(domain("d")).under(a.clone()).delete(key(0));
    let freed = store.commit(delete).unwrap().revision;
    disk.set_budget(None);
    let begun = Instant::now();
    while store.revision() == freed {
        assert!(begun.elapsed() < LIMIT, "the clock isn't noted any more");
        thread::park_timeout(Duration::from_millis(5));
    }
}
