//! Ends and new beginnings under load, watches across them, and what stays bounded meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use highwater_client::{Client, ClientError, NotSent, ScanKeys, Session, WatchChange, WatchUpdate};
use highwater_core::{Commit, Condition, Epoch, KeyRange, Revision};
use highwater_proto::v1;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::support::{
    Place, Random, SMALL, Server, TOO_LONG, authority, count, epoch_of_jobs, jobs, key, value,
};

/// Beginnings of an HTTP/2 connection: what a client says first, and a header frame without its end.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const HALF_A_CALL: &[u8] = b"\0\0\x40\x01\x04\0\0\0\x01\x83\x86";

/// The small bounds, except those that are given.
fn with<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let name = |option: &'a str| option.split('=').next();
    let is_given = |small: &&str| {
        options
            .iter()
            .any(|given| name(given) == small.split('=').next())
    };
    let kept = SMALL.iter().copied().filter(|small| !is_given(small));
    kept.chain(options.iter().copied()).collect()
}

async fn writer(server: &Server, holder: &str) -> (Client, Epoch, Session) {
    let client = server.client().await;
    let epoch = epoch_of_jobs(&client).await;
    let session = client.session(jobs(), authority(epoch, 1, holder));
    (client, epoch, session)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_asked_to_end_ends_whatever_is_open() {
    let place = Place::new();
    let server = place.start(&with(&["--shutdown-grace=500ms"]));
    let (client, _, session) = writer(&server, "w").await;
    for number in 0..64 {
        session
            .put(key(format!("k/{number}")), value([b'.'; 20_000]))
            .await
            .unwrap();
    }
    let mut watch = client
        .watch(&jobs(), &KeyRange::all(), true, None)
        .await
        .unwrap();
    let keys = ScanKeys::Range(KeyRange::all());
    let mut scan = client.scan(&jobs(), keys, None, None).await.unwrap();
    assert!(scan.next().await.unwrap().is_some());
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    let mut half = TcpStream::connect(server.address).await.unwrap();
    half.write_all(&[PREFACE, HALF_A_CALL].concat())
        .await
        .unwrap();
    let (mut commits, mut verdicts) = session.pipeline().await.unwrap();
    commits
        .send(session.draft().delete(key("k/0")))
        .await
        .unwrap();
    assert!(verdicts.next().await.unwrap().result.is_ok());

    server.signal("TERM");
    let told = loop {
        match watch.next().await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(
        matches!(told, ClientError::NotSent(NotSent::Refused(_))),
        "{told:?}"
    );
    let status = server.ended().await;
    assert_eq!(status.code(), Some(0), "{}", place.said());
    let closed = async {
        let mut rest = Vec::new();
        let _ = idle.read_to_end(&mut rest).await;
        let _ = half.read_to_end(&mut rest).await;
    };
    tokio::time::timeout(TOO_LONG, closed).await.unwrap();
    let server = place.start(&SMALL);
    let (client, _, _) = writer(&server, "w").await;
    assert_eq!(
        client.get(&jobs(), &key("k/0"), None).await.unwrap().record,
        None
    );
    assert!(
        client
            .get(&jobs(), &key("k/63"), None)
            .await
            .unwrap()
            .record
            .is_some()
    );
}

/// Raises the counter by one again and again, and tells how often that was acknowledged and whether
/// the last attempt has an unknown outcome.
async fn increment(
    client: Client,
    epoch: Epoch,
    number: u64,
    progress: watch::Sender<u64>,
) -> (u64, bool) {
    let own = key(format!("count/by-{number}"));
    let total = key("count/total");
    let (mut acknowledged, mut is_unknown) = (0_u64, false);
    while !is_unknown {
        let Ok(found) = client.get(&jobs(), &total, None).await else {
            break;
        };
        let generation = found.record.as_ref().map(|record| record.generation);
        let sum: u64 = found
            .record
            .map_or(0, |record| read(record.value.as_bytes()));
        let condition = Condition::GenerationIs {
            key: total.clone(),
            generation,
        };
        let commit = Commit::new(jobs())
            .under(authority(epoch, 1, "all"))
            .when(condition)
            .put(total.clone(), value((sum + 1).to_string()))
            .put(own.clone(), value((acknowledged + 1).to_string()));
        match client.commit(&commit).await {
            Ok(_) => {
                acknowledged += 1;
                progress.send_modify(|progress| *progress += 1);
            }
            Err(ClientError::ConditionFailed(_)) => {}
            Err(error) if error.may_have_happened() => is_unknown = true,
            Err(_) => break,
        }
    }
    (acknowledged, is_unknown)
}

fn read(bytes: &[u8]) -> u64 {
    std::str::from_utf8(bytes).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_increment_is_counted_twice_when_the_server_ends_under_load() {
    let mut random = Random::new();
    for _ in 0..count("HIGHWATER_ENDS", 3) {
        let place = Place::new();
        let server = place.start(&SMALL);
        let (client, epoch, _) = writer(&server, "w").await;
        let (progress, mut seen) = watch::channel(0);
        let mut clients = Vec::new();
        for number in 0..8 {
            let client = server.client().await;
            clients.push(tokio::spawn(increment(
                client,
                epoch,
                number,
                progress.clone(),
            )));
        }
        let enough = 20 + random.below(200);
        seen.wait_for(|progress| *progress >= enough).await.unwrap();
        server.signal("TERM");
        let status = server.ended().await;
        assert_eq!(status.code(), Some(0), "{}", place.said());
        drop(client);
        let server = place.start(&SMALL);
        let (client, _, _) = writer(&server, "w").await;
        let number_at = async |name: String| {
            let found = client.get(&jobs(), &key(name), None).await.unwrap();
            found
                .record
                .map_or(0, |record| read(record.value.as_bytes()))
        };
        let mut sum = 0;
        for (number, writing) in clients.into_iter().enumerate() {
            let (acknowledged, is_unknown) = writing.await.unwrap();
            let own = number_at(format!("count/by-{number}")).await;
            assert!(own == acknowledged || is_unknown && own == acknowledged + 1);
            sum += own;
        }
        assert_eq!(number_at("count/total".into()).await, sum);
    }
}

/// Follows `k/` from a revision on until the server is gone; collects each commit's keys.
async fn follow(
    client: &Client,
    after: Option<Revision>,
    seen: &mut BTreeMap<u64, BTreeSet<Vec<u8>>>,
) -> Option<Revision> {
    let range = KeyRange::of_prefix(b"k/");
    let mut watch = client.watch(&jobs(), &range, false, after).await.unwrap();
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
    let mut seen = BTreeMap::new();
    let mut told = BTreeMap::new();
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
        let ((), now) = tokio::join!(writing, follow(&client, after, &mut seen));
        after = now;
        server.ended().await;
        server = place.start(&options);
    }
    // What was told to the writer just before the end may reach the watch only afterwards.
    let (client, _, session) = writer(&server, "w").await;
    let last = session
        .put(key("k/last"), value(""))
        .await
        .unwrap()
        .revision;
    told.insert(last.get(), BTreeSet::from([b"k/last".to_vec()]));
    let ending = async {
        server.signal("TERM");
    };
    let range = KeyRange::of_prefix(b"k/");
    let mut watch = client.watch(&jobs(), &range, false, after).await.unwrap();
    loop {
        if let WatchUpdate::Commit { revision, changes } = watch.next().await.unwrap() {
            let keys = changes.into_iter().map(|change| match change {
                WatchChange::Put(key, _) => key.as_bytes().to_vec(),
                other => panic!("{other:?}"),
            });
            assert!(seen.insert(revision.get(), keys.collect()).is_none());
            if revision == last {
                break;
            }
        }
    }
    ending.await;
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

#[tokio::test(flavor = "multi_thread")]
async fn figures_do_not_grow_with_keys_and_holders() {
    let place = Place::new();
    let server = place.start(&SMALL);
    let (client, epoch, _) = writer(&server, "w").await;
    let attempt = async |number: u64, sequence: u64| {
        let holder = format!("holder-{number}");
        let commit = Commit::new(jobs())
            .under(authority(epoch, sequence, &holder))
            .put(key(format!("job-{number}/k")), value(""));
        client.commit(&commit).await
    };
    attempt(0, 2).await.unwrap();
    attempt(0, 1).await.unwrap_err();
    let names = async || {
        let status = client.status().await.unwrap();
        let counters: Vec<_> = status.counters.into_keys().collect();
        let rejections: Vec<_> = status.rejections.into_keys().collect();
        (counters, rejections)
    };
    let before = names().await;
    let many = count("HIGHWATER_NAMES", 1_000);
    for number in 1..=many {
        attempt(number, 2).await.unwrap();
        attempt(number, 1).await.unwrap_err();
    }
    assert_eq!(names().await, before);
    let status = client.status().await.unwrap();
    assert_eq!(status.rejections["StaleTerm"], many + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_exist_throughout_are_listed_once_while_others_come_and_go() {
    let total = count("HIGHWATER_LISTED", 20_000);
    let place = Place::new();
    let server = place.start(&[
        "--segment-bytes=1MiB",
        "--log-bytes=4MiB",
        "--memory-bytes=8MiB",
    ]);
    let (client, epoch, _) = writer(&server, "w").await;
    let session = client.session(jobs(), authority(epoch, 1, "w"));
    let name = |number: u64| format!("k/{number:06}");
    for base in (0..total).step_by(1_000) {
        let draft = (base..total.min(base + 1_000)).fold(session.draft(), |draft, number| {
            draft.put(key(name(number * 2)), value(""))
        });
        session.commit(draft).await.unwrap();
    }
    let (stop, stopped) = watch::channel(false);
    let mut random = Random::new();
    let writing = tokio::spawn(async move {
        let mut made = 0_u64;
        while !*stopped.borrow() {
            // Odd ones only.
            let odd = key(name(random.below(total) * 2 + 1));
            session.put(odd.clone(), value("x")).await.unwrap();
            session.delete(odd).await.unwrap();
            made += 1;
        }
        made
    });
    let mut listed = Vec::new();
    let mut raw = server.raw().await;
    let mut page_token = bytes::Bytes::new();
    let mut calls = 0;
    loop {
        let request = v1::ScanRequest {
            domain: "jobs".into(),
            keys: Some(v1::scan_request::Keys::Prefix(b"k/".as_slice().into())),
            page_records: 500,
            pages: 1,
            page_token,
            ..v1::ScanRequest::default()
        };
        let mut pages = raw.scan(request).await.unwrap().into_inner();
        let page = pages.message().await.unwrap().unwrap();
        assert!(pages.message().await.unwrap().is_none());
        listed.extend(page.records.into_iter().map(|record| record.key));
        page_token = page.page_token;
        calls += 1;
        if page_token.is_empty() {
            break;
        }
    }
    stop.send_replace(true);
    assert!(writing.await.unwrap() > 0 && calls > 1);
    assert!(listed.is_sorted_by(|one, next| one < next));
    let is_even = |key: &bytes::Bytes| (key.last().unwrap() - b'0').is_multiple_of(2);
    let kept: Vec<_> = listed.into_iter().filter(is_even).collect();
    let wanted: Vec<_> = (0..total)
        .map(|number| name(number * 2).into_bytes())
        .collect();
    assert_eq!(kept, wanted);
}
