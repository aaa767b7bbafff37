//! What a replacement is told of its predecessors' intents: a step is present, or it is absent and
//! stays so, or nobody can say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use highwater::{
    Admission, Authority, Commit, Effects, Ending, Error, Found, Guard, GuardRule, IntentId,
    IntentState, Key, Mutation, Reconcile, Step, Store, TakeOver, Value, Work,
};
use highwater_tests::disk::SimDisk;

use crate::support::{domain, open, policy, tight};

const GUARD: &str = "job";

fn make() -> (SimDisk, Store) {
    let disk = SimDisk::default();
    let store = open(&disk, &tight());
    let by_job = GuardRule::Prefix {
        delimiter: b'/',
        depth: 1,
    };
    store
        .create_domain(domain("d"), policy(by_job, Admission::Fenced), None)
        .unwrap();
    (disk, store)
}

fn authority(store: &Store, sequence: u64, holder: &str) -> Authority {
    let epoch = store.domain(&domain("d")).unwrap().epochs.current().epoch;
    Authority::parse(&format!("{epoch}/{sequence}@{holder}")).unwrap()
}

fn guard() -> Guard {
    Guard::new(GUARD).unwrap()
}

fn id(name: impl AsRef<[u8]>) -> IntentId {
    IntentId::new(name.as_ref()).unwrap()
}

/// The first step of an intent, as a key under a guard.
fn step(store: &Store, name: &str, under: &str, sequence: u64, holder: &str) -> Commit {
    Commit::new(domain("d"))
        .for_intent(id(name), Step::FIRST)
        .under(authority(store, sequence, holder))
        .put(
            Key::new(format!("{under}/{name}")).unwrap(),
            Value::new("done").unwrap(),
        )
}

fn look(store: &Store, names: &[&str]) -> Vec<Found> {
    let intents = names.iter().map(id).collect();
    let question = Reconcile::new(domain("d"), intents);
    let told = store.reconcile(&question).unwrap();
    assert!(told.receipt.is_none(), "nothing was fenced");
    told.found
}

fn fenced(store: &Store, names: &[&str], sequence: u64, holder: &str) -> Result<Vec<Found>, Error> {
    let intents = names.iter().map(id).collect();
    let question =
        Reconcile::new(domain("d"), intents).fencing(guard(), authority(store, sequence, holder));
    Ok(store.reconcile(&question)?.found)
}

fn effects(found: &[Found]) -> Vec<(Effects, bool)> {
    let each = found.iter();
    each.map(|found| (found.finding.effects, found.finding.settled))
        .collect()
}

fn code(error: &Error) -> &'static str {
    error.rejection().unwrap().reason.code()
}

fn bind(store: &Store, name: &str, to: &str) {
    let bind = Mutation::BindIntent {
        intent: id(name),
        work: Work::under(Guard::new(to).unwrap()),
    };
    let commit = Commit::new(domain("d"))
        .under(authority(store, 1, "a"))
        .with(bind);
    store.commit(commit).unwrap();
}

fn close(store: &Store, name: &str) {
    let commit = Commit::new(domain("d"))
        .under(authority(store, 1, "a"))
        .advance(guard())
        .with(Mutation::CloseIntent {
            intent: id(name),
            guard: Some(guard()),
            ending: Ending::Cancelled,
        });
    store.commit(commit).unwrap();
}

#[test]
fn without_a_fence_nothing_is_ever_absent() {
    let (_, store) = make();
    store.commit(step(&store, "done", GUARD, 1, "a")).unwrap();
    store.commit(step(&store, "ended", GUARD, 1, "a")).unwrap();
    bind(&store, "ended", GUARD);
    close(&store, "ended");
    bind(&store, "bound", GUARD);
    bind(&store, "nothing", GUARD);
    close(&store, "nothing");
    let found = look(&store, &["done", "ended", "bound", "nothing", "unknown"]);
    assert_eq!(
        effects(&found),
        [
            (Effects::Present, false),
            (Effects::Present, true),
            (Effects::Indeterminate, false),
            (Effects::Indeterminate, true),
            (Effects::Indeterminate, false),
        ]
    );
    let receipt = &found[0].record.as_ref().unwrap().steps[0].receipt;
    assert_eq!(receipt.intent.as_ref().unwrap().id, id("done"));
    assert!(found[4].record.is_none());
    // Looking fenced nobody.
    store.commit(step(&store, "bound", GUARD, 1, "a")).unwrap();
    close(&store, "bound");
}

#[test]
fn what_is_absent_under_a_fence_stays_absent_for_all_earlier_holders() {
    let (disk, store) = make();
    store.commit(step(&store, "done", GUARD, 1, "a")).unwrap();
    let found = fenced(&store, &["done", "lost"], 2, "b").unwrap();
    assert_eq!(
        effects(&found),
        [(Effects::Present, true), (Effects::Absent, true)]
    );
    for store in [store, open(&SimDisk::with_files(&disk.files()), &tight())] {
        let stale = store.commit(step(&store, "lost", GUARD, 1, "a"));
        assert_eq!(code(&stale.unwrap_err()), "StaleTerm");
        // Nor by way of a guard that nobody has fenced.
        let beside = store.commit(step(&store, "lost", "other", 9, "a"));
        assert_eq!(code(&beside.unwrap_err()), "IntentConflict");
        assert_eq!(
            effects(&fenced(&store, &["lost"], 2, "b").unwrap())[0].0,
            Effects::Absent
        );
        // The one who asked may go on, once.
        store.commit(step(&store, "lost", GUARD, 2, "b")).unwrap();
        let again = store.commit(step(&store, "lost", GUARD, 1, "a")).unwrap();
        assert!(again.replayed, "whoever asks is told of it");
        assert_eq!(
            effects(&fenced(&store, &["lost"], 2, "b").unwrap())[0].0,
            Effects::Present
        );
    }
}

#[test]
fn whoever_is_fenced_out_is_told_nothing_and_leaves_nothing() {
    let (_, store) = make();
    fenced(&store, &[], 5, "b").unwrap();
    let before = store.revision();
    assert_eq!(
        code(&fenced(&store, &["i"], 4, "a").unwrap_err()),
        "StaleTerm"
    );
    assert_eq!(
        code(&fenced(&store, &["i"], 5, "c").unwrap_err()),
        "HolderConflict"
    );
    assert_eq!(store.revision(), before);
    assert!(look(&store, &["i"])[0].record.is_none());
}

#[test]
fn an_intent_of_another_guard_is_not_settled_by_this_fence() {
    let (_, store) = make();
    bind(&store, "i", "other");
    let found = fenced(&store, &["i"], 2, "b").unwrap();
    assert_eq!(effects(&found), [(Effects::Indeterminate, false)]);
    store.commit(step(&store, "i", "other", 1, "a")).unwrap();
}

#[test]
fn a_long_list_is_told_in_its_order() {
    let (_, store) = make();
    let names: Vec<String> = (0..50)
        .map(|number| format!("i{:02}", number * 7 % 50))
        .collect();
    for name in names.iter().filter(|name| name.ends_with('3')) {
        store.commit(step(&store, name, GUARD, 1, "a")).unwrap();
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = fenced(&store, &names, 2, "b").unwrap();
    for (name, found) in names.iter().zip(&found) {
        assert_eq!(found.id, id(name));
        let present = name.ends_with('3');
        let expected = if present {
            Effects::Present
        } else {
            Effects::Absent
        };
        assert_eq!(found.finding.effects, expected, "{name}");
        assert_eq!(found.record.as_ref().unwrap().state, IntentState::Open);
    }
    assert_eq!(found.len(), names.len());
}

#[test]
fn a_take_over_tells_of_intents_and_records_in_one_state() {
    let (_, store) = make();
    store.commit(step(&store, "done", GUARD, 1, "a")).unwrap();
    let taken = store
        .take_over(TakeOver {
            domain: domain("d"),
            guard: guard(),
            authority: authority(&store, 2, "b"),
            intents: vec![id("lost"), id("done")],
            destination: None,
            caller: None,
            limit: 10,
        })
        .unwrap();
    assert_eq!(
        effects(&taken.found),
        [(Effects::Absent, true), (Effects::Present, true)]
    );
    assert_eq!(taken.page.records.len(), 1);
    assert_eq!(
        taken.receipt.guards[0]
            .previous
            .as_ref()
            .unwrap()
            .term
            .sequence
            .get(),
        1
    );
}

/// The old holder takes its step at the very moment at which it is replaced.
#[test]
fn either_the_step_is_seen_or_it_never_happens() {
    let (_, store) = make();
    let store = Arc::new(store);
    let (mut present, mut absent) = (0, 0);
    for round in 0..400_u64 {
        let name = format!("r{round}");
        let (old, new) = (2 * round + 1, 2 * round + 2);
        fenced(&store, &[], old, "a").unwrap();
        let begun = Arc::new(AtomicBool::new(false));
        let holder = thread::spawn({
            let (store, begun) = (Arc::clone(&store), Arc::clone(&begun));
            let commit = step(&store, &name, GUARD, old, "a");
            move || {
                begun.store(true, Ordering::SeqCst);
                store.commit(commit).map_err(|error| code(&error))
            }
        });
        while round % 2 == 0 && !begun.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
        let found = fenced(&store, &[&name], new, "b").unwrap();
        let verdict = holder.join().unwrap();
        match found[0].finding.effects {
            Effects::Present => {
                present += 1;
                let recorded = &found[0].record.as_ref().unwrap().steps[0].receipt;
                assert_eq!(verdict.unwrap().revision, recorded.revision);
            }
            Effects::Absent => {
                absent += 1;
                assert!(
                    matches!(verdict, Err("StaleTerm" | "IntentConflict")),
                    "{verdict:?}"
                );
                assert_eq!(
                    effects(&fenced(&store, &[&name], new, "b").unwrap())[0].0,
                    Effects::Absent
                );
            }
            Effects::Indeterminate => panic!("under a fence it is one or the other"),
        }
    }
    assert!(
        present > 0 && absent > 0,
        "{present} present, {absent} absent"
    );
}
