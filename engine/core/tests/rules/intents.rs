//! Intents: every sequence of commands on two of them, what a repeated step gets, and what is
//! asked.

use std::collections::BTreeSet;

use highwater_core::codec::encode_command;
use highwater_core::{
    Admission, Availability, DomainState, GuardRule, HolderBinding, Reason, Unavailable, Verdict,
    decide,
};

use crate::oracle::Rules;
use crate::raw::{
    Auths, Bytes, Change, Cond, Request, Task, advance, auth, delete, label, put, request, task,
};
use crate::twin::{HERE, MARK, START, Twin, malformed};

/// How many commands follow each other before the last question.
const DEPTH: usize = 3;

fn rules(admission: Admission) -> Rules {
    Rules {
        guard: GuardRule::Key,
        admission,
        binding: HolderBinding::None,
        step: None,
    }
}

fn by(sequence: u64, holder: &str, changes: Vec<Change>) -> Request {
    request(changes).under(auth(1, MARK, sequence, holder))
}

fn id(name: &str) -> Bytes {
    name.into()
}

/// Two steps of two intents in two forms, by two holders; every change of an intent.
fn commands() -> Vec<Request> {
    let mut all = Vec::new();
    for step in [1, 2] {
        for value in ["1", "2"] {
            let sequence = u64::from(step);
            all.push(by(sequence, "a", vec![put("k", value)]).step("i", step));
        }
    }
    all.push(by(2, "a", vec![put("k", "2")]).step("i", 2).completing());
    all.push(by(3, "b", vec![delete("k")]).step("j", 1).completing());
    let bind = |guard| Change::Bind(id("i"), task(guard));
    all.push(by(2, "a", vec![bind("k")]));
    all.push(by(2, "a", vec![bind("k"), put("k", "1")]).step("i", 1));
    for guard in [None, Some(id("k"))] {
        let close = Change::Close(id("i"), guard.clone(), "cancelled");
        let suspend = Change::Suspend(id("i"), guard, id("o"), 7);
        all.push(by(2, "a", vec![close]));
        all.push(by(2, "a", vec![suspend]));
    }
    all
}

/// What is asked after each of them, beside the commands themselves.
fn questions() -> Vec<Request> {
    let mut all = commands();
    let other = |guard, inputs: &[(&str, u64)], configuration: Option<&str>| Task {
        guard: id(guard),
        inputs: inputs.iter().map(|(key, at)| (id(key), *at)).collect(),
        configuration: configuration.map(id),
    };
    let tasks = [
        other("k", &[], None),
        other("l", &[], None),
        other("k", &[("k", 0)], None),
        other("k", &[], Some("v")),
    ];
    let authorities = [(1, "a"), (2, "a"), (2, "b"), (3, "a")];
    for (sequence, holder) in authorities {
        for task in &tasks {
            all.push(by(
                sequence,
                holder,
                vec![Change::Bind(id("i"), task.clone())],
            ));
        }
        for step in [1, 2, 3] {
            all.push(by(sequence, holder, vec![put("k", "1")]).step("i", step));
            all.push(
                by(sequence, holder, vec![put("k", "1")])
                    .step("j", step)
                    .completing(),
            );
        }
    }
    for step in [1, 2, 3] {
        // Beside the guard that it may be bound to, and under nobody.
        all.push(by(3, "a", vec![put("l", "1")]).step("i", step));
        all.push(by(3, "a", vec![put("l", "1"), put("k", "1")]).step("i", step));
        all.push(request(vec![put("k", "1")]).step("i", step));
        let mut partly = request(vec![put("l", "1"), put("k", "1")]).step("i", step);
        partly.auth = Auths::PerGuard(vec![(id("l"), auth(1, MARK, 3, "a"))]);
        all.push(partly);
    }
    for guard in [None, Some(id("k")), Some(id("l"))] {
        for name in ["i", "j", "z"] {
            let close = |how| Change::Close(id(name), guard.clone(), how);
            let ending = ["completed", "superseded", "cancelled", "rejected"];
            all.extend(ending.map(|how| by(3, "a", vec![close(how)])));
            let suspend = |owner, at| Change::Suspend(id(name), guard.clone(), id(owner), at);
            all.push(by(3, "a", vec![suspend("o", 7)]));
            all.push(by(3, "a", vec![suspend("o", 8)]));
            all.push(by(3, "a", vec![close("rejected"), put("k", "3")]).step("i", 2));
            all.push(by(3, "a", vec![suspend("p", 7)]).step("i", 2).completing());
            all.push(request(vec![close("cancelled")]));
        }
    }
    all
}

fn explore(twin: &Twin, questions: &[Request], depth: usize, judged: &mut usize) {
    for question in questions {
        let _ = twin.judge(question);
        *judged += 1;
    }
    if depth == 0 {
        return;
    }
    for command in commands() {
        let mut next = twin.clone();
        next.step(&command);
        explore(&next, questions, depth - 1, judged);
    }
}

fn explore_all(admission: Admission) {
    let mut judged = 0;
    explore(
        &Twin::new(rules(admission)),
        &questions(),
        DEPTH,
        &mut judged,
    );
    assert!(
        judged > 100_000,
        "the world is as small as {judged} questions"
    );
}

#[test]
fn every_sequence_of_intents_in_a_fenced_domain() {
    explore_all(Admission::Fenced);
}

#[test]
fn every_sequence_of_intents_in_an_open_domain() {
    explore_all(Admission::Open);
}

/// A step that was accepted gets its receipt again, whatever has become of the destination, of its
/// fences, of its keys and of the intent; and one that wasn't doesn't.
#[test]
fn a_step_is_replayed_whatever_has_happened_since() {
    let mut twin = Twin::new(rules(Admission::Fenced));
    let first = by(5, "a", vec![put("k", "1")])
        .when(Cond::GenerationIs(id("k"), 0))
        .step("i", 1);
    assert!(twin.step(&first));
    assert!(twin.step(&by(
        9,
        "b",
        vec![put("k", "2"), Change::Bind(id("i"), task("k"))]
    )));
    let close = Change::Close(id("i"), Some(id("k")), "rejected");
    assert!(twin.step(&by(9, "b", vec![close])));
    twin.new_epoch(0x22);
    let mut strange = first.clone().under(auth(7, 7, 7, "x")).called_by("y");
    strange.destination = Some(HERE);
    let nobody = request(first.changes.clone())
        .when(first.conds[0].clone())
        .step("i", 1);
    for availability in [
        Availability::Ready,
        Availability::Poisoned,
        Availability::Overloaded,
        Availability::DiskFull,
        Availability::RecoveryRequired,
    ] {
        for state in [
            DomainState::Active,
            DomainState::Frozen,
            DomainState::RecoveryRequired,
        ] {
            twin.set_availability(availability);
            twin.set_state(state);
            for again in [&first, &strange, &nobody] {
                let Verdict::Replayed(receipt) = twin.judge(again) else {
                    panic!("{availability:?} {state:?} {again:?}");
                };
                assert_eq!(receipt.revision.get(), START + 2);
                assert!(!twin.step(again), "it is no new effect");
            }
            let other = Request {
                changes: vec![put("k", "3")],
                ..first.clone()
            };
            let Verdict::Rejected(rejection) = twin.judge(&other) else {
                panic!("another content was accepted");
            };
            assert_eq!(rejection.reason.code(), "IntentConflict");
        }
    }
}

#[test]
fn an_intent_takes_64_steps_one_after_the_other() {
    let mut twin = Twin::new(rules(Admission::Open));
    for step in 1..=64 {
        assert!(!twin.step(&request(vec![put("k", "1")]).step("i", (step % 64) + 1)) || step == 64);
        assert!(twin.step(&request(vec![put("k", "1")]).step("i", step)) || step == 64);
    }
    let record = twin
        .state
        .intent(twin.domain().id, &crate::raw::intent(b"i"))
        .unwrap();
    assert_eq!((record.steps.len(), record.next_step()), (64, None));
}

/// Changes of each kind, and each beside itself in one part.
fn single_changes() -> Vec<Change> {
    let task = |guard, inputs: &[(&str, u64)], configuration: Option<&str>| Task {
        guard: id(guard),
        inputs: inputs.iter().map(|(key, at)| (id(key), *at)).collect(),
        configuration: configuration.map(id),
    };
    vec![
        put("k", "1"),
        put("k", ""),
        put("l", "1"),
        Change::Put(id("k"), id("1"), "t".into()),
        delete("k"),
        label("k", "t"),
        label("k", ""),
        advance("k"),
        Change::Bind(id("k"), task("k", &[], None)),
        Change::Bind(id("i"), task("k", &[], None)),
        Change::Bind(id("i"), task("l", &[], None)),
        Change::Bind(id("i"), task("k", &[("k", 0)], None)),
        Change::Bind(id("i"), task("k", &[("k", START + 1)], None)),
        Change::Bind(id("i"), task("k", &[], Some("k"))),
        Change::Close(id("i"), None, "completed"),
        Change::Close(id("i"), None, "cancelled"),
        Change::Close(id("i"), Some(id("k")), "cancelled"),
        Change::Close(id("j"), None, "completed"),
        Change::Suspend(id("i"), None, id("o"), 1),
        Change::Suspend(id("i"), None, id("o"), 2),
        Change::Suspend(id("i"), None, id("p"), 1),
        Change::Suspend(id("i"), Some(id("k")), id("o"), 1),
    ]
}

/// The bytes of what is asked are the same for the same, and others for everything else.
#[test]
fn what_is_asked_is_told_apart_and_who_asks_is_not() {
    let bytes = |request: &Request| {
        let mut out = Vec::new();
        encode_command(&request.commit(), &mut out);
        out
    };
    let base = request(vec![put("k", "1")]).when(Cond::GenerationIs(id("k"), 0));
    let mut same = base
        .clone()
        .under(auth(1, 2, 3, "a"))
        .called_by("c")
        .step("i", 9);
    same.destination = Some(HERE);
    assert_eq!(bytes(&base), bytes(&same));
    let conds = |key: &str, number: u64| {
        vec![
            Cond::GenerationIs(id(key), START + number),
            Cond::GenerationIsNot(id(key), START + number),
            Cond::MetagenerationIs(id(key), number),
            Cond::MetagenerationIsNot(id(key), number),
            Cond::WrittenUnder(id(key), (1, 2, number)),
            Cond::WrittenUnder(id(key), (1, 3, number)),
            Cond::DigestOf(id(key), vec![u8::try_from(number).unwrap()]),
            Cond::KeySince(id(key), START + number),
            Cond::PrefixSince(id(key), START + number),
        ]
    };
    let mut all = vec![
        vec![put("k", "1"), put("l", "")],
        vec![put("l", ""), put("k", "1")],
        vec![put("k", "1"), delete("l")],
    ];
    all.extend(single_changes().into_iter().map(|change| vec![change]));
    let mut seen = BTreeSet::new();
    let mut count = 0;
    for changes in &all {
        let bare = request(changes.clone()).step("i", 1);
        let cond = || Cond::GenerationIs(id("k"), 0);
        for request in [bare.clone(), bare.clone().completing(), bare.when(cond())] {
            seen.insert(bytes(&request));
            count += 1;
        }
    }
    for cond in [conds("k", 1), conds("k", 2), conds("l", 1)].concat() {
        seen.insert(bytes(&request(vec![put("k", "1")]).when(cond)));
        count += 1;
    }
    assert_eq!(seen.len(), count);
}

/// A commit that lacks what R3 looks at is refused, and so is a change of an intent that wasn't
/// fetched.
#[test]
fn an_intent_that_was_not_fetched_refuses_the_commit() {
    let mut twin = Twin::new(rules(Admission::Open));
    assert!(twin.step(&request(vec![put("k", "1")]).step("j", 1)));
    let close = Change::Close(id("j"), None, "cancelled");
    let request = request(vec![put("k", "1"), close]).step("i", 1);
    let full = twin.state.view(&request.commit());
    assert_eq!(full.intents.len(), 2);
    let refused = |view: &highwater_core::View| match decide(view, &request.commit()) {
        Verdict::Rejected(rejection) => {
            rejection.reason == Reason::Unavailable(Unavailable::Incomplete)
        }
        Verdict::Accepted(_) | Verdict::Replayed(_) => false,
    };
    assert!(!refused(&full));
    for at in 0..2 {
        let mut view = full.clone();
        view.intents.remove(at);
        assert!(refused(&view), "intent {at}");
    }
    let mut view = full.clone();
    view.command_digest = None;
    assert!(refused(&view));
    // Of a row that nobody looked at it isn't said that there is none.
    let second = Request {
        intent: Some((id("j"), 2, false)),
        ..request.clone()
    };
    let commit = second.commit();
    let mut view = twin.state.view(&commit);
    view.intents.clear();
    let Verdict::Rejected(rejection) = decide(&view, &commit) else {
        panic!("a decision on rows that nobody fetched");
    };
    assert_eq!(
        rejection.reason,
        Reason::Unavailable(Unavailable::Incomplete)
    );
}

/// Every bound of a commit about intents, at it and one above.
#[test]
fn a_commit_changes_at_most_its_number_of_intents() {
    let twin = Twin::new(rules(Admission::Open));
    let judge = |request: &Request| match twin.judge(request) {
        Verdict::Rejected(rejection) => malformed(&rejection.reason),
        Verdict::Accepted(_) | Verdict::Replayed(_) => Some("accepted"),
    };
    let bind = |number: usize, inputs: usize| {
        let mut task = task("k");
        task.inputs = vec![(id("k"), 0); inputs];
        Change::Bind(number.to_string().into_bytes(), task)
    };
    for (intents, inputs, wanted) in [
        (16, 0, "accepted"),
        (17, 0, "TooMany"),
        (1, 64, "accepted"),
        (1, 65, "TooMany"),
    ] {
        let changes = (0..intents).map(|number| bind(number, inputs)).collect();
        assert_eq!(
            judge(&by(1, "a", changes)),
            Some(wanted),
            "{intents} {inputs}"
        );
    }
    let close = || Change::Close(id("0"), None, "rejected");
    for (changes, wanted) in [
        (vec![bind(0, 0)], "accepted"),
        (vec![bind(0, 0), bind(1, 0)], "accepted"),
        (vec![bind(0, 0), bind(0, 0)], "DuplicateIntent"),
        (vec![bind(0, 0), close()], "DuplicateIntent"),
        (vec![close()], "DuplicateIntent"),
    ] {
        let request = by(1, "a", changes).step("0", 1).completing();
        assert_eq!(judge(&request), Some(wanted), "{request:?}");
    }
}
