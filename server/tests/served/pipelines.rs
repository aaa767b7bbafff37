//! Pipelines: one verdict for each commit, in order, in band.

use highwater_client::{ClientError, NotSent};
use highwater_core::{Condition, Malformed, Reason};

use crate::harness::{Served, jobs, key, options, value};

#[tokio::test(flavor = "multi_thread")]
async fn verdicts_come_in_order_and_a_refusal_ends_nothing() {
    let served = Served::start(options()).await;
    let session = served.session(1, "a").await;
    let (mut commits, mut verdicts) = session.pipeline().await.unwrap();
    let count = 3_000;
    let draft = session.draft();
    let sender = tokio::spawn(async move {
        for at in 0..count {
            let commit = match at % 10 {
                3 => draft.clone(),
                7 => {
                    let key = key("job/0");
                    let absent = Condition::GenerationIs {
                        key: key.clone(),
                        generation: None,
                    };
                    draft.clone().when(absent).put(key, value(""))
                }
                _ => draft
                    .clone()
                    .put(key(format!("job/{at}")), value(at.to_string())),
            };
            assert_eq!(commits.send(commit).await.unwrap(), at);
        }
        commits.finish();
    });
    let mut last = None;
    for at in 0..count {
        let verdict = verdicts.next().await.unwrap();
        assert_eq!(verdict.id, at);
        match (at % 10, verdict.result) {
            (3, Err(ClientError::FixRequest(rejection))) => {
                assert_eq!(rejection.reason, Reason::Malformed(Malformed::Empty));
            }
            (7, Err(ClientError::ConditionFailed(_))) => {}
            (kind, Ok(receipt)) if kind != 3 && kind != 7 => {
                assert!(last < Some(receipt.revision));
                last = Some(receipt.revision);
                let record = served
                    .store
                    .get(&jobs(), &key(format!("job/{at}")))
                    .unwrap();
                assert_eq!(record.unwrap().value, value(at.to_string()));
            }
            (_, result) => panic!("{at}: {result:?}"),
        }
    }
    assert!(verdicts.next().await.is_none());
    sender.await.unwrap();
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_authority_stops_the_session_and_later_commits_are_refused_too() {
    let served = Served::start(options()).await;
    let old = served.session(1, "a").await;
    served
        .session(2, "b")
        .await
        .put(key("job/1"), value(""))
        .await
        .unwrap();
    let (mut commits, mut verdicts) = old.pipeline().await.unwrap();
    for _ in 0..2 {
        commits
            .send(old.draft().put(key("job/1"), value("late")))
            .await
            .unwrap();
    }
    for id in 0..2 {
        let verdict = verdicts.next().await.unwrap();
        assert_eq!(verdict.id, id);
        let error = verdict.result.unwrap_err();
        assert!(matches!(error, ClientError::LostAuthority(_)), "{error:?}");
    }
    let stopped = commits
        .send(old.draft().put(key("x"), value("")))
        .await
        .unwrap_err();
    assert!(
        matches!(stopped, ClientError::SessionStopped { .. }),
        "{stopped:?}"
    );
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_answers_what_was_taken_and_disowns_the_rest() {
    let served = Served::start(options()).await;
    let session = served.session(1, "a").await;
    let (mut commits, mut verdicts) = session.pipeline().await.unwrap();
    commits
        .send(session.draft().put(key("job/1"), value("one")))
        .await
        .unwrap();
    assert!(verdicts.next().await.unwrap().result.is_ok());
    let store = served.store.clone();
    served.stop().await.unwrap();
    let draft = session.draft().put(key("job/2"), value("two"));
    if commits.send(draft).await.is_ok() {
        let verdict = verdicts.next().await.unwrap();
        assert_eq!(verdict.id, 1);
        let error = verdict.result.unwrap_err();
        assert!(
            matches!(error, ClientError::NotSent(NotSent::Refused(_))),
            "{error:?}"
        );
    }
    assert!(verdicts.next().await.is_none());
    assert_eq!(store.get(&jobs(), &key("job/2")).unwrap(), None);
}
