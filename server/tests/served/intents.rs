//! Intents through the wire: their whole life, and what tells one operation from another.

use highwater_client::{ClientError, IntentFilter, Session};
use highwater_core::{
    Commit, Condition, Configuration, Ending, Guard, Input, IntentConflict, IntentId, IntentState,
    Metadata, Mutation, Owner, Reason, Step, Work,
};
use tonic::Code;

use crate::harness::{Served, jobs, key, options, value};

fn id(name: &str) -> IntentId {
    IntentId::new(name).unwrap()
}

fn guard() -> Guard {
    Guard::new("job").unwrap()
}

fn step(number: u32) -> Step {
    Step::new(number).unwrap()
}

fn work() -> Work {
    let input = Input::Key {
        key: key("job/in"),
        generation: None,
    };
    let configuration = Configuration::new("v7").unwrap();
    Work::under(guard())
        .from_input(input)
        .configured(configuration)
}

fn bind(session: &Session, name: &str) -> Commit {
    let intent = id(name);
    session.draft().with(Mutation::BindIntent {
        intent,
        work: work(),
    })
}

fn close(session: &Session, name: &str, ending: Ending) -> Commit {
    session.draft().with(Mutation::CloseIntent {
        intent: id(name),
        guard: Some(guard()),
        ending,
    })
}

fn suspend(session: &Session, name: &str, review_at_ms: u64) -> Commit {
    session.draft().with(Mutation::SuspendIntent {
        intent: id(name),
        guard: Some(guard()),
        owner: Owner::new("ops").unwrap(),
        review_at_ms,
    })
}

/// The reason of a refusal about an intent, with what was observed of it.
#[track_caller]
fn refused(error: ClientError) -> (Reason, Option<IntentState>) {
    let ClientError::Intent(rejection) = error else {
        panic!("{error:?}")
    };
    let observed = rejection.observed.intent.unwrap();
    (rejection.reason, observed.found.map(|found| found.state))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_intent_lives_from_its_binding_to_its_end() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    let session = served.session(1, "a").await;
    let look = async || client.intent(&jobs(), &id("i")).await.unwrap().record;
    assert_eq!(look().await, None);
    let bound = session.commit(bind(&session, "i")).await.unwrap();
    let record = look().await.unwrap();
    assert_eq!(record.state, IntentState::Open);
    let binding = record.binding.unwrap();
    assert_eq!(binding.work, work());
    assert_eq!(binding.authority, served.authority(1, "a"));
    assert_eq!(record.changed_at, bound.revision);

    let first = session.draft().put(key("job/1"), value("one"));
    let first = session
        .commit(first.for_intent(id("i"), step(1)))
        .await
        .unwrap();
    let used = first.intent.clone().unwrap();
    assert_eq!(
        (used.id, used.step, first.replayed),
        (id("i"), step(1), false)
    );
    session.commit(suspend(&session, "i", 77)).await.unwrap();
    let second = || {
        let draft = session.draft().put(key("job/2"), value("two"));
        draft.for_intent(id("i"), step(2)).completing()
    };
    let (reason, state) = refused(session.commit(second()).await.unwrap_err());
    let owner = Owner::new("ops").unwrap();
    let indeterminate = IntentState::Indeterminate {
        owner,
        review_at_ms: 77,
    };
    assert_eq!(state, Some(indeterminate.clone()));
    let mutation = None;
    let state = indeterminate;
    assert_eq!(reason, Reason::IntentClosed { state, mutation });
    session
        .commit(close(&session, "i", Ending::Superseded))
        .await
        .unwrap();
    let record = look().await.unwrap();
    assert_eq!(record.state, IntentState::Ended(Ending::Superseded));
    assert_eq!(record.steps.len(), 1);
    assert_eq!(record.steps[0].receipt, first);

    let again = session
        .commit(close(&session, "i", Ending::Completed))
        .await;
    let (reason, _) = refused(again.unwrap_err());
    assert_eq!(reason.code(), "IntentClosed");
    let (reason, state) = refused(
        session
            .commit(close(&session, "j", Ending::Completed))
            .await
            .unwrap_err(),
    );
    assert_eq!((reason, state), (Reason::UnknownIntent, None));
    let at_once = session.draft().put(key("job/3"), value("three"));
    let at_once = at_once.for_intent(id("k"), step(1)).completing();
    session.commit(at_once).await.unwrap();
    let found = client
        .intent(&jobs(), &id("k"))
        .await
        .unwrap()
        .record
        .unwrap();
    assert_eq!(found.state, IntentState::Ended(Ending::Completed));
    served.stop().await.unwrap();
}

/// The same id with anything else in it is another operation, and that is said.
#[tokio::test(flavor = "multi_thread")]
async fn one_thing_changed_is_a_conflict_and_the_first_effect_stays() {
    let served = Served::start(options()).await;
    let session = served.session(1, "a").await;
    let absent = |name: &str| Condition::GenerationIs {
        key: key(name),
        generation: None,
    };
    let put = |name: &str, text: &str| session.draft().put(key(name), value(text));
    let first = || put("job/1", "v").when(absent("job/1"));
    let as_first = |commit: Commit| commit.for_intent(id("i"), step(1));
    let receipt = session.commit(as_first(first())).await.unwrap();
    let labelled = Mutation::Put {
        key: key("job/1"),
        value: value("v"),
        metadata: Metadata::default().with_label("a", "b").unwrap(),
    };
    let exists = Condition::GenerationIsNot {
        key: key("job/1"),
        generation: None,
    };
    let known = Condition::GenerationIs {
        key: key("job/1"),
        generation: receipt.writes[0].generation,
    };
    let others = [
        put("job/1", "w").when(absent("job/1")),
        put("job/2", "v").when(absent("job/1")),
        put("job/1", "v").when(absent("job/2")),
        put("job/1", "v").when(exists),
        put("job/1", "v").when(known),
        put("job/1", "v"),
        first().when(absent("job/2")),
        first().delete(key("job/2")),
        session.draft().with(labelled).when(absent("job/1")),
        session.draft().delete(key("job/1")).when(absent("job/1")),
    ];
    let before = served.store.revision();
    let completing = as_first(first()).completing();
    for other in others.into_iter().map(as_first).chain([completing]) {
        let (reason, state) = refused(session.commit(other.clone()).await.unwrap_err());
        let conflict = IntentConflict::Digest;
        assert_eq!(reason, Reason::IntentConflict(conflict), "{other:?}");
        assert_eq!(state, Some(IntentState::Open));
        let code = highwater_proto::status::code_of(&reason);
        assert_eq!(code, Code::AlreadyExists);
    }
    let skipped = first().for_intent(id("i"), step(3));
    let (reason, _) = refused(session.commit(skipped).await.unwrap_err());
    let expected = Some(step(2));
    let conflict = IntentConflict::Step { expected };
    assert_eq!(reason, Reason::IntentConflict(conflict));
    assert_eq!(served.store.revision(), before);
    let stored = served.store.get(&jobs(), &key("job/1")).unwrap().unwrap();
    assert_eq!(Some(stored.generation), receipt.writes[0].generation);

    // Who asks, under which term, and by which call is none of it.
    for (sequence, holder) in [(1, "a"), (2, "b"), (u64::MAX - 1, "c")] {
        let other = served.session(sequence, holder).await;
        assert!(other.commit(as_first(first())).await.unwrap().replayed);
    }
    let (mut commits, mut verdicts) = session.pipeline().await.unwrap();
    commits.send(as_first(first())).await.unwrap();
    commits.finish();
    let told = verdicts.next().await.unwrap().result.unwrap();
    assert_eq!((told.replayed, told.revision), (true, receipt.revision));
    let judged = as_first(first()).under(served.authority(7, "z"));
    let judged = served.client().await.judge(&judged).await.unwrap();
    assert_eq!(judged, told);
    assert_eq!(served.store.revision(), before);
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_64_who_ask_at_once_all_get_the_one_generation() {
    let served = Served::start(options()).await;
    let before = served.store.status().counted.accepted;
    let mut sessions = Vec::new();
    for _ in 0..8 {
        sessions.push(served.session(1, "a").await);
    }
    for round in 1..=20_u32 {
        let asked = (0..64_usize).map(|at| {
            let session = sessions[at % sessions.len()].clone();
            let draft = session.draft().put(key("job/1"), value(round.to_string()));
            let draft = draft.for_intent(id("i"), step(round));
            tokio::spawn(async move { session.commit(draft).await.unwrap() })
        });
        let asked: Vec<_> = asked.collect();
        let (mut fresh, mut generations) = (0, std::collections::BTreeSet::new());
        for receipt in asked {
            let receipt = receipt.await.unwrap();
            fresh += u32::from(!receipt.replayed);
            generations.insert(receipt.writes[0].generation);
        }
        assert_eq!((fresh, generations.len()), (1, 1));
        let stored = served.store.get(&jobs(), &key("job/1")).unwrap().unwrap();
        assert!(generations.contains(&Some(stored.generation)));
    }
    let counted = served.store.status().counted;
    assert_eq!(counted.accepted - before, 20);
    assert_eq!(counted.replayed, 20 * 63);
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_show_every_intent_of_their_filter_once_and_in_order() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    let session = served.session(1, "a").await;
    // More than one call looks at: its first page is empty for a filter that holds for the last.
    let names: Vec<String> = (0..4_200).map(|number| format!("{number:05}")).collect();
    for some in names.chunks(16) {
        let mut commit = session.draft();
        for name in some {
            commit.mutations.extend(bind(&session, name).mutations);
        }
        session.commit(commit).await.unwrap();
    }
    let (last, other) = ("04199", "04198");
    session.commit(suspend(&session, last, 500)).await.unwrap();
    session.commit(suspend(&session, other, 499)).await.unwrap();
    session
        .commit(close(&session, "00007", Ending::Rejected))
        .await
        .unwrap();
    let all = async |filter| {
        let (mut found, mut pages, mut token) = (Vec::new(), 0, None);
        loop {
            let page = client.intents(&jobs(), filter, token).await.unwrap();
            assert_eq!(page.revision, served.store.revision());
            pages += 1;
            let names = page.intents.into_iter().map(|(id, _)| id.to_string());
            found.extend(names);
            token = page.token;
            if token.is_none() {
                return (found, pages);
            }
        }
    };
    let due = |due_before_ms| IntentFilter::Indeterminate { due_before_ms };
    let (found, pages) = all(IntentFilter::All).await;
    assert_eq!(found, names);
    assert!(pages > 1);
    let gone = ["00007", other, last];
    let open = names.iter().filter(|name| !gone.contains(&name.as_str()));
    assert!(all(IntentFilter::Open).await.0.iter().eq(open));
    assert_eq!(all(IntentFilter::Ended).await.0, ["00007"]);
    let (found, pages) = all(due(None)).await;
    assert_eq!(found, [other, last]);
    assert!(pages > 1, "a page without any was passed");
    assert_eq!(all(due(Some(500))).await.0, [other]);
    assert!(all(due(Some(499))).await.0.is_empty());
    served.stop().await.unwrap();
}
