//! Conditions: who wins where many want to be first, and what holds for keys in every state.

use highwater_client::{ClientError, Session};
use highwater_core::{Commit, Condition, Generation};

use super::domain;
use crate::support::{Place, SMALL, authority, by_job, count, jobs, key, value};

fn is(generation: Option<Generation>) -> Condition {
    let key = key("job/k");
    Condition::GenerationIs { key, generation }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_create_a_key_one_wins_and_the_others_can_read_it() {
    let place = Place::new();
    let server = place.start(&SMALL);
    let epoch = domain(&server, "jobs", &by_job()).await;
    let client = server.client().await;
    let session = client.session(jobs(), authority(epoch, 1, "all"));
    for round in 0..count("HIGHWATER_RACES", 20) {
        let name = key(format!("job/{round}"));
        let mut racing = tokio::task::JoinSet::new();
        for number in 0..64 {
            let (session, name) = (session.clone(), name.clone());
            racing.spawn(async move {
                let absent = Condition::GenerationIs {
                    key: name.clone(),
                    generation: None,
                };
                let draft = session
                    .draft()
                    .when(absent)
                    .put(name.clone(), value(number.to_string()));
                let result = session.commit(draft).await;
                // Whoever lost sees who won, at once.
                let found = session.get(&name).await.unwrap().record.unwrap();
                (number.to_string(), result, found)
            });
        }
        let results = racing.join_all().await;
        let won: Vec<_> = results
            .iter()
            .filter(|(_, result, _)| result.is_ok())
            .collect();
        assert_eq!(won.len(), 1);
        let winner = value(&won[0].0);
        for (_, result, found) in &results {
            assert_eq!(found.value, winner);
            if let Err(error) = result {
                let ClientError::ConditionFailed(rejection) = error else {
                    panic!("{error:?}")
                };
                assert_eq!(rejection.observed.generation, Some(found.generation));
            }
        }
    }
}

/// Brings `job/k` into a state, and gives its generation.
async fn prepare(session: &Session, state: &str) -> Option<Generation> {
    session.delete(key("job/k")).await.unwrap();
    match state {
        "absent" | "deleted" => None,
        _ => {
            session
                .put(key("job/k"), value("old"))
                .await
                .unwrap()
                .writes[0]
                .generation
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_condition_holds_in_exactly_the_states_that_it_names() {
    let place = Place::new();
    let server = place.start(&SMALL);
    let epoch = domain(&server, "jobs", &by_job()).await;
    let client = server.client().await;
    let session = client.session(jobs(), authority(epoch, 1, "a"));
    let long_ago = session.put(key("job/k"), value("")).await.unwrap().writes[0].generation;
    let mutate: [fn(Commit) -> Commit; 3] = [
        |commit| commit.put(key("job/k"), value("new")),
        |commit| commit.delete(key("job/k")),
        |commit| {
            commit
                .put(key("job/k"), value("new"))
                .delete(key("job/other"))
        },
    ];
    for state in ["absent", "deleted", "exists"] {
        for change in mutate {
            // Whether it must be absent, must have its very generation, or an older one.
            for (asks, holds) in [
                ("nothing", true),
                ("absent", state != "exists"),
                ("now", state == "exists"),
                ("long ago", false),
            ] {
                let now = prepare(&session, state).await;
                let draft = match asks {
                    "nothing" => session.draft(),
                    "absent" => session.draft().when(is(None)),
                    "now" => session.draft().when(is(now.or(long_ago))),
                    _ => session.draft().when(is(long_ago)),
                };
                let result = session.commit(change(draft)).await;
                assert_eq!(result.is_ok(), holds, "{state} {asks}: {result:?}");
                let found = session.get(&key("job/k")).await.unwrap().record;
                if let Err(error) = result {
                    assert!(
                        matches!(error, ClientError::ConditionFailed(_)),
                        "{error:?}"
                    );
                    assert_eq!(found.map(|record| record.generation), now);
                }
            }
        }
    }
}
