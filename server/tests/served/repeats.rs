//! Answers that are lost: what is sent again, what isn't, and what both get.

use std::time::Duration;

use highwater_client::{ClientError, ClientOptions, Session};
use highwater_core::{Commit, Condition, Generation, IntentId, Receipt, Step};

use crate::harness::{Served, jobs, key, options, value};
use crate::proxy::{Proxy, verdicts};

fn id() -> IntentId {
    IntentId::new("once").unwrap()
}

fn tries(intent_tries: u32) -> ClientOptions {
    ClientOptions {
        intent_tries,
        ..ClientOptions::default()
    }
}

/// A write that can happen once at most, whoever sends it how often.
fn create(session: &Session) -> Commit {
    let absent = Condition::GenerationIs {
        key: key("job/1"),
        generation: None,
    };
    session.draft().when(absent).put(key("job/1"), value("v"))
}

fn step(session: &Session) -> Commit {
    create(session).for_intent(id(), Step::FIRST)
}

fn generation(receipt: &Receipt) -> Option<Generation> {
    receipt.writes[0].generation
}

/// The served store, a proxy before it, and a session through that.
async fn through_proxy(options_of_client: ClientOptions) -> (Served, Proxy, Session) {
    let served = Served::start(options()).await;
    let proxy = Proxy::start(&served).await;
    let client = proxy.client(options_of_client).await;
    let session = client.session(jobs(), served.authority(1, "a"));
    (served, proxy, session)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_intent_a_write_is_sent_once_and_its_outcome_is_unknown() {
    let (served, proxy, session) = through_proxy(tries(5)).await;
    for number in 0..4_u64 {
        proxy.lose(1);
        let before = verdicts(&served.store);
        let name = format!("job/{number}");
        let result = match number {
            0 => session.put(key(&name), value("v")).await,
            1 => session.delete(key("job/0")).await,
            2 => {
                session
                    .advance(highwater_core::Guard::new("job").unwrap())
                    .await
            }
            _ => {
                session
                    .commit(session.draft().put(key(&name), value("v")))
                    .await
            }
        };
        let error = result.unwrap_err();
        assert!(
            matches!(error, ClientError::OutcomeUnknown { .. }),
            "{error:?}"
        );
        assert_eq!(verdicts(&served.store), before + 1, "{number}");
        assert_eq!(proxy.left(), 0);
    }
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_step_is_sent_again_and_gets_the_first_receipt() {
    let (served, proxy, session) = through_proxy(tries(5)).await;
    let before = served.store.status().counted;
    proxy.lose(3);
    let receipt = session.commit(step(&session)).await.unwrap();
    assert!(receipt.replayed);
    let counted = served.store.status().counted;
    assert_eq!(counted.accepted, before.accepted + 1);
    assert_eq!(counted.replayed, before.replayed + 3);
    let stored = served.store.get(&jobs(), &key("job/1")).unwrap().unwrap();
    assert_eq!(generation(&receipt), Some(stored.generation));
    assert_eq!(receipt.revision, served.store.revision());
    let record = served.client().await.intent(&jobs(), &id()).await.unwrap();
    let first = &record.record.unwrap().steps[0].receipt;
    let replayed = true;
    assert_eq!(
        receipt,
        Receipt {
            replayed,
            ..first.clone()
        }
    );
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_lost_conditional_write_the_caller_learns_with_and_without_an_intent() {
    let (served, proxy, session) = through_proxy(tries(1)).await;
    proxy.lose(1);
    let lost = session.commit(step(&session)).await.unwrap_err();
    assert!(lost.may_have_happened(), "{lost:?}");
    // The very same again: the original success.
    let told = session.commit(step(&session)).await.unwrap();
    assert!(told.replayed);
    let stored = served.store.get(&jobs(), &key("job/1")).unwrap().unwrap();
    assert_eq!(generation(&told), Some(stored.generation));

    let known = Condition::GenerationIs {
        key: key("job/1"),
        generation: Some(stored.generation),
    };
    let again = || {
        session
            .draft()
            .when(known.clone())
            .put(key("job/1"), value("w"))
    };
    proxy.lose(1);
    let lost = session.commit(again()).await.unwrap_err();
    assert!(lost.may_have_happened(), "{lost:?}");
    // Without an intent it is refused, and the evidence says by which generation.
    let refused = session.commit(again()).await.unwrap_err();
    let ClientError::ConditionFailed(rejection) = &refused else {
        panic!("{refused:?}")
    };
    let stored = served.store.get(&jobs(), &key("job/1")).unwrap().unwrap();
    assert_eq!(stored.value, value("w"));
    assert_eq!(rejection.observed.generation, Some(stored.generation));
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn repetitions_are_bounded_by_number_and_by_time() {
    let (served, proxy, session) = through_proxy(tries(3)).await;
    proxy.lose(100);
    let before = verdicts(&served.store);
    let lost = session.commit(step(&session)).await.unwrap_err();
    assert!(
        matches!(lost, ClientError::OutcomeUnknown { .. }),
        "{lost:?}"
    );
    assert_eq!(verdicts(&served.store), before + 3);

    proxy.lose(0);
    let hasty = ClientOptions {
        deadline: Duration::from_millis(400),
        ..tries(u32::MAX)
    };
    let session = proxy
        .client(hasty)
        .await
        .session(jobs(), served.authority(1, "a"));
    proxy.lose(u64::MAX);
    let lost = session.commit(step(&session)).await.unwrap_err();
    assert!(
        matches!(lost, ClientError::OutcomeUnknown { .. }),
        "{lost:?}"
    );
    served.stop().await.unwrap();
}

/// That nobody can be reached any more doesn't make an unknown outcome a known one.
#[tokio::test(flavor = "multi_thread")]
async fn a_step_with_an_unknown_outcome_stays_unknown_where_nobody_answers() {
    let (served, proxy, session) = through_proxy(tries(4)).await;
    proxy.lose_and_close();
    let lost = session.commit(step(&session)).await.unwrap_err();
    assert!(
        matches!(lost, ClientError::OutcomeUnknown { .. }),
        "{lost:?}"
    );
    assert!(served.store.get(&jobs(), &key("job/1")).unwrap().is_some());
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_is_refused_is_sent_once() {
    let (served, _proxy, session) = through_proxy(tries(5)).await;
    session.put(key("job/1"), value("there")).await.unwrap();
    let before = verdicts(&served.store);
    let refused = session.commit(step(&session)).await.unwrap_err();
    assert!(
        matches!(refused, ClientError::ConditionFailed(_)),
        "{refused:?}"
    );
    assert_eq!(verdicts(&served.store), before + 1);
    served.stop().await.unwrap();
}

/// While a step's answer is lost a newer holder comes: the step was taken, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_step_is_told_again_to_one_who_has_lost_its_authority() {
    let (served, proxy, session) = through_proxy(tries(1)).await;
    proxy.lose(1);
    assert!(
        session
            .commit(step(&session))
            .await
            .unwrap_err()
            .may_have_happened()
    );
    let newer = served.session(2, "b").await;
    newer.put(key("job/2"), value("newer")).await.unwrap();
    assert!(session.commit(step(&session)).await.unwrap().replayed);
    // Another step is a new effect, and that one is refused.
    let next = Step::FIRST.next().unwrap();
    let next = session
        .draft()
        .put(key("job/1"), value("late"))
        .for_intent(id(), next);
    let refused = session.commit(next).await.unwrap_err();
    assert!(
        matches!(refused, ClientError::LostAuthority(_)),
        "{refused:?}"
    );
    served.stop().await.unwrap();
}
