//! Watches over restarts, far behind, and at the edge of what is kept.

use std::collections::{BTreeMap, BTreeSet};

use highwater_client::{Client, ClientError, WatchChange, WatchUpdate};
use highwater_core::{KeyRange, Revision};
use highwater_proto::v1;

use crate::support::{Place, Random, SMALL, Server, count, jobs, key, value, with, writer};

/// The keys that each commit changed, by its revision.
type Seen = BTreeMap<u64, BTreeSet<Vec<u8>>>;

/// Follows `k/` from a revision on, to another one or until the server is gone, and tells how far
/// it got.
async fn follow(
    client: &Client,
    after: Option<Revision>,
    until: Option<Revision>,
    seen: &mut Seen,
) -> Option<Revision> {
    let range = KeyRange::of_prefix(b"k/");
    let watch = client.watch(&jobs(), &range, false, after).await;
    let mut watch = watch.unwrap();
    while let Ok(update) = watch.next().await {
        let WatchUpdate::Commit { revision, changes } = update else {
            continue;
        };
        let keys = changes.into_iter().map(|change| match change {
            WatchChange::Put(key, record) => {
                assert_eq!(record.generation.get(), revision.get());
                key.as_bytes().to_vec()
            }
            other => panic!("{other:?}"),
        });
        let last = seen.last_key_value().map_or(0, |(last, _)| *last);
        assert!(revision.get() > last, "{revision} again, behind {last}");
        seen.insert(revision.get(), keys.collect());
        if until == Some(revision) {
            break;
        }
    }
    watch.seen()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_over_restarts_without_gap_repeat_or_split() {
    let place = Place::new();
    let options = with(&["--history-bytes=4MiB"]);
    let mut server = place.start(&options);
    let (client, _, _) = writer(&server, "w").await;
    let mut after = Some(
        client
            .get(&jobs(), &key("k/0"), None)
            .await
            .unwrap()
            .revision,
    );
    let mut seen = Seen::new();
    let mut told = Seen::new();
    let mut random = Random::new();
    let restarts = count("HIGHWATER_RESTARTS", 6);
    for restart in 0..=restarts {
        let (client, _, session) = writer(&server, "w").await;
        let commits = 10 + random.below(40);
        let writing = async {
            for number in 0..commits {
                let names = [
                    format!("k/{restart}-{number}"),
                    "k/same".into(),
                    format!("k/{number}"),
                ];
                let draft = names.iter().fold(session.draft(), |draft, name| {
                    draft.put(key(name), value(name))
                });
                let receipt = session.commit(draft).await.unwrap();
                let names = names
                    .iter()
                    .map(|name| name.clone().into_bytes())
                    .collect::<BTreeSet<_>>();
                told.insert(receipt.revision.get(), names);
            }
            server.signal(if restart % 2 == 0 { "TERM" } else { "KILL" });
        };
        let ((), now) = tokio::join!(writing, follow(&client, after, None, &mut seen));
        after = now;
        server.ended().await;
        server = place.start(&options);
    }
    // What the writer was told just before the end may reach the watch only now.
    let (client, _, session) = writer(&server, "w").await;
    let last = session.put(key("k/last"), value("")).await.unwrap();
    told.insert(last.revision.get(), BTreeSet::from([b"k/last".to_vec()]));
    follow(&client, after, Some(last.revision), &mut seen).await;
    assert_eq!(seen, told);
}

/// Resident memory of the server, in KiB.
fn resident(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_does_not_read_costs_no_memory_and_is_told_that_it_fell_behind() {
    let changes = count("HIGHWATER_LAG_CHANGES", 4_000);
    let place = Place::new();
    let server = place.start(&with(&["--history-bytes=2MiB", "--memory-bytes=4MiB"]));
    let (client, _, session) = writer(&server, "w").await;
    let request = v1::WatchRequest {
        domain: "jobs".into(),
        keys: Some(v1::watch_request::Keys::Prefix(b"".as_slice().into())),
        ..v1::WatchRequest::default()
    };
    let mut slow = Vec::new();
    for _ in 0..8 {
        // Each on a connection of its own, whose windows nobody empties.
        slow.push(
            server
                .raw()
                .await
                .watch(request.clone())
                .await
                .unwrap()
                .into_inner(),
        );
    }
    session
        .put(key("warm"), value([b'.'; 20_000]))
        .await
        .unwrap();
    let before = resident(&server);
    let mut quick = client
        .watch(&jobs(), &KeyRange::all(), false, None)
        .await
        .unwrap();
    let writing = tokio::spawn(async move {
        let mut told = Vec::new();
        for number in 0..changes {
            let put = session.put(key(format!("k/{}", number % 7)), value([b'.'; 20_000]));
            told.push(put.await.unwrap().revision);
        }
        told
    });
    let mut seen = Vec::new();
    while (seen.len() as u64) < changes {
        if let WatchUpdate::Commit { revision, .. } = quick.next().await.unwrap() {
            seen.push(revision);
        }
    }
    assert_eq!(seen, writing.await.unwrap());
    let grown = resident(&server).saturating_sub(before);
    println!(
        "{} KiB of changes, the server grew by {grown} KiB",
        changes * 20
    );
    assert!(grown < 64 << 10, "{grown} KiB");
    for mut watch in slow {
        let mut last = 0;
        let status = loop {
            match watch.message().await {
                Ok(Some(answer)) => match answer.kind.unwrap() {
                    v1::watch_response::Kind::Event(event) => last = event.revision,
                    v1::watch_response::Kind::Progress(progress) => last = progress.revision,
                },
                Ok(None) => panic!("a watch has no end of its own"),
                Err(status) => break status,
            }
        };
        assert_eq!(status.code(), tonic::Code::OutOfRange, "{status:?}");
        let detail = highwater_proto::status::too_old(&status).unwrap();
        assert_eq!(detail.requested, last);
        assert!(detail.oldest > last);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_from_the_floor_of_the_history_misses_nothing() {
    let place = Place::new();
    let server = place.start(&SMALL);
    let (client, _, session) = writer(&server, "w").await;
    let mut deleted_at = BTreeMap::new();
    let floor_of = async || client.status().await.unwrap().counters["history_since"];
    let first = floor_of().await;
    let mut number = 0;
    // Every revision behind the first ones is a deletion of a key of its own, or its creation.
    while floor_of().await <= first + 20 {
        let key = key(format!("k/{number}"));
        session
            .put(key.clone(), value([b'.'; 2_000]))
            .await
            .unwrap();
        let deletion = session.delete(key.clone()).await.unwrap();
        deleted_at.insert(deletion.revision.get(), key);
        number += 1;
    }
    // Nothing is written from here on, so the floor stays where it is.
    let floor = floor_of().await;
    let at = |revision: u64| Some(Revision::new(revision).unwrap());
    let mut watch = client
        .watch(&jobs(), &KeyRange::all(), false, at(floor))
        .await
        .unwrap();
    let update = watch.next().await.unwrap();
    let WatchUpdate::Commit { revision, changes } = update else {
        panic!("{update:?}")
    };
    assert_eq!(revision.get(), floor + 1);
    match deleted_at.get(&revision.get()) {
        Some(key) => assert_eq!(changes, [WatchChange::Deleted(key.clone())]),
        None => assert!(
            matches!(&changes[..], [WatchChange::Put(..)]),
            "{changes:?}"
        ),
    }
    let below = client
        .watch(&jobs(), &KeyRange::all(), false, at(floor - 1))
        .await;
    let error = match below {
        Err(error) => error,
        Ok(mut watch) => watch.next().await.unwrap_err(),
    };
    let ClientError::WatchTooOld { requested, oldest } = error else {
        panic!("{error:?}")
    };
    assert_eq!((requested, oldest), (at(floor - 1), at(floor)));
}
