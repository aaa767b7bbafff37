//! Ends under load, and what stays bounded and complete while others write.

use highwater_client::{Client, ClientError, ClientOptions, NotSent, ScanKeys};
use highwater_core::{Commit, Condition, Epoch, KeyRange};
use highwater_proto::v1;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::support::{
    Place, Random, SMALL, TOO_LONG, authority, count, jobs, key, value, with, writer,
};

/// The beginning of an HTTP/2 connection: what a client says first, and half a header frame.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const HALF_A_CALL: &[u8] = b"\0\0\x40\x01\x04\0\0\0\x01\x83\x86";

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
    let name = |number: u64| format!("k/{number:08}");
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

/// Bytes of all files of a store.
fn disk_bytes(place: &Place) -> u64 {
    let files = std::fs::read_dir(place.data()).unwrap();
    files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum()
}

/// Whether the last size is no more than the one before, but for a log segment or two.
fn has_settled(sizes: &[u64]) -> bool {
    let [.., before, last] = sizes else {
        return false;
    };
    *last < before + (1 << 20)
}

#[tokio::test(flavor = "multi_thread")]
async fn overwriting_takes_no_more_disk_even_under_a_reader_that_stalls() {
    let place = Place::new();
    let server = place.start(&with(&["--snapshot-age=1s", "--page-bytes=64KiB"]));
    let (client, _, session) = writer(&server, "w").await;
    let overwrite = async |rounds: u64| {
        for _ in 0..rounds {
            // A hundred keys of 40 KiB, twenty at a time.
            let mut writing = tokio::task::JoinSet::new();
            for lane in 0..20 {
                let session = session.clone();
                writing.spawn(async move {
                    for number in 0..5 {
                        let key = key(format!("k/{lane}-{number}"));
                        session.put(key, value([b'.'; 40_000])).await.unwrap();
                    }
                });
            }
            writing.join_all().await;
        }
    };
    overwrite(2).await;
    let keys = ScanKeys::Range(KeyRange::all());
    let mut stalled = client.scan(&jobs(), keys, None, None).await.unwrap();
    let first = stalled.next().await.unwrap().unwrap().revision;
    overwrite(count("HIGHWATER_OVERWRITE_ROUNDS", 10)).await;
    // Whatever the reader does, its revision isn't kept for longer than was said.
    let let_go = async {
        while client.status().await.unwrap().counters["snapshots"] > 0 {
            overwrite(1).await;
        }
    };
    tokio::time::timeout(TOO_LONG, let_go).await.unwrap();
    // The index may have grown once more at the end of the reader; then it has room for ever.
    let mut sizes = vec![disk_bytes(&place)];
    while sizes.len() < 5 && !has_settled(&sizes) {
        overwrite(6).await;
        sizes.push(disk_bytes(&place));
    }
    println!("{sizes:?} bytes on disk, each after 24 MB more");
    assert!(has_settled(&sizes), "{sizes:?}");
    let ended = loop {
        match stalled.next().await {
            Ok(page) => assert_eq!(page.unwrap().revision, first),
            Err(error) => break error,
        }
    };
    let ClientError::ReadFailed(status) = ended else {
        panic!("{ended:?}")
    };
    assert_eq!(status.code(), tonic::Code::Aborted);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_connections_than_files_leave_the_server_serving() {
    let place = Place::new();
    let mut limited = std::process::Command::new("sh");
    let limit = "ulimit -n 80; exec \"$0\" \"$@\"";
    limited.args(["-c", limit, env!("CARGO_BIN_EXE_highwater")]);
    let server = place.launch(limited, &SMALL).unwrap();
    let (client, _, session) = writer(&server, "w").await;
    let mut flood = Vec::new();
    for _ in 0..100 {
        flood.push(TcpStream::connect(server.address).await.unwrap());
    }
    // Segments are made and recycled meanwhile, for which connections leave files enough.
    let keys: Vec<_> = (0..300).map(|number| key(format!("k/{number}"))).collect();
    for key in &keys {
        let written = session.put(key.clone(), value([b'.'; 2_000])).await;
        written.unwrap_or_else(|error| panic!("{error:?}: {}", place.said()));
    }
    drop(flood);
    // The places of connections that have gone are free as soon as the server sees it.
    let address = format!("http://{}", server.address);
    let again = async {
        loop {
            if let Ok(client) = Client::connect(&address, ClientOptions::default()).await {
                break client;
            }
        }
    };
    let other = tokio::time::timeout(TOO_LONG, again).await.unwrap();
    for key in keys {
        for client in [&client, &other] {
            let found = client.get(&jobs(), &key, None).await.unwrap();
            assert!(found.record.is_some());
        }
    }
    server.signal("TERM");
    assert_eq!(server.ended().await.code(), Some(0), "{}", place.said());
}
