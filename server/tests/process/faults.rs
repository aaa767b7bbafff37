//! A disk that fails or is in use; and a process that dies at any of its system calls.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use highwater_client::{Client, ClientError, Session};
use highwater_core::{Authority, Reason, Unavailable};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::support::{
    Place, Random, SMALL, Server, TOO_LONG, authority, count, epoch_of_jobs, jobs, key, program,
    traced, value,
};

/// Most commits that are tried before something that must happen has to have happened.
pub(crate) const MANY: u64 = 20_000;

pub(crate) async fn session(server: &Server) -> (Client, Session) {
    let client = server.client().await;
    let epoch = epoch_of_jobs(&client).await;
    let session = client.session(jobs(), authority(epoch, 1, "w"));
    (client, session)
}

pub(crate) async fn put(session: &Session, number: u64, bytes: usize) -> Result<(), ClientError> {
    let mut text = number.to_string().into_bytes();
    text.resize(text.len() + bytes, b'.');
    let put = session.put(key(format!("k/{number}")), value(text));
    put.await.map(|_| ())
}

/// Every one of the first `count` keys is there, with its own value.
pub(crate) async fn assert_all_there(client: &Client, numbers: impl Iterator<Item = u64>) {
    for number in numbers {
        let found = client
            .get(&jobs(), &key(format!("k/{number}")), None)
            .await
            .unwrap();
        let record = found.record.unwrap_or_else(|| panic!("{number} is lost"));
        let text = record
            .value
            .as_bytes()
            .split(|byte| *byte == b'.')
            .next()
            .unwrap();
        assert_eq!(text, number.to_string().as_bytes());
    }
}

pub(crate) async fn health(server: &Server) -> ServingStatus {
    let mut client = HealthClient::new(server.channel().await);
    let request = HealthCheckRequest {
        service: "highwater.v1.Highwater".into(),
    };
    client.check(request).await.unwrap().into_inner().status()
}

pub(crate) async fn until_health_is(server: &Server, wanted: ServingStatus) {
    let reached = async {
        while health(server).await != wanted {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TOO_LONG, reached).await.unwrap();
}

/// A tracer that came to a process that runs already. It lets go when it is dropped.
struct Tracer(Child);

impl Tracer {
    fn attach(server: &Server, options: &[&str]) -> Self {
        let mut child = Command::new("strace")
            .args(["-f", "-o", "/dev/null", "-p", &server.pid().to_string()])
            .args(options)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        said.read_line(&mut line).unwrap();
        assert!(line.contains("attached"), "{line}");
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self(child)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_poisoned(error: &ClientError) -> bool {
    let reason = error.rejection().map(|rejection| &rejection.reason);
    matches!(reason, Some(Reason::Unavailable(Unavailable::Poisoned)))
}

/// Writes from many tasks until the store is poisoned. Gives what was acknowledged, with the first
/// twenty, and how many outcomes are unknown.
pub(crate) async fn write_until_poisoned(session: &Session) -> (Vec<u64>, u64) {
    let mut accepted: Vec<u64> = (0..20).collect();
    let mut unknown = 0;
    for base in (100..MANY).step_by(64) {
        let tasks: Vec<_> = (base..base + 64)
            .map(|number| {
                let session = session.clone();
                tokio::spawn(async move { (number, put(&session, number, 500).await) })
            })
            .collect();
        let mut poisoned = 0;
        for task in tasks {
            // None hangs.
            let (number, result) = tokio::time::timeout(TOO_LONG, task).await.unwrap().unwrap();
            match result {
                Ok(()) => accepted.push(number),
                Err(ClientError::OutcomeUnknown {
                    cause: Some(status),
                }) => {
                    assert_eq!(status.code(), Code::Unknown, "{status:?}");
                    unknown += 1;
                }
                Err(error) => {
                    assert!(is_poisoned(&error), "{error:?}");
                    poisoned += 1;
                }
            }
        }
        if poisoned > 0 {
            break;
        }
    }
    (accepted, unknown)
}

/// No kind of write is taken, alone or in a stream.
pub(crate) async fn assert_all_refused(session: &Session) {
    assert!(is_poisoned(&put(session, 1, 1).await.unwrap_err()));
    let deletion = session.delete(key("k/1")).await.unwrap_err();
    assert!(is_poisoned(&deletion), "{deletion:?}");
    let (mut commits, mut verdicts) = session.pipeline().await.unwrap();
    for number in 0..3 {
        assert_eq!(
            commits
                .send(session.draft().delete(key("k/1")))
                .await
                .unwrap(),
            number
        );
    }
    commits.finish();
    for number in 0..3 {
        let verdict = verdicts.next().await.unwrap();
        assert_eq!(verdict.id, number);
        assert!(is_poisoned(&verdict.result.unwrap_err()));
    }
    assert!(verdicts.next().await.is_none());
}

/// Once a write or a sync failed, everything is answered, nothing is accepted, and reads go on.
async fn fails_for_good(file: &str, call: &str, errno: &str) {
    if traced(&[]).is_none() {
        return;
    }
    let place = Place::new();
    let server = place.start(&SMALL);
    let (client, session) = session(&server).await;
    for number in 0..20 {
        put(&session, number, 100).await.unwrap();
    }
    let trace = format!("-etrace={call}");
    let inject = format!("-einject={call}:error={errno}:when=1");
    let path = place.data().join(file);
    let tracer = Tracer::attach(&server, &[&trace, &inject, "-P", path.to_str().unwrap()]);

    let (accepted, unknown) = write_until_poisoned(&session).await;
    until_health_is(&server, ServingStatus::NotServing).await;
    assert_all_refused(&session).await;
    assert_all_there(&client, accepted.iter().copied()).await;
    if file.starts_with("log") {
        assert!(unknown > 0);
    }
    drop(tracer);
    server.kill().await;

    let server = place.start(&SMALL);
    until_health_is(&server, ServingStatus::Serving).await;
    let (client, session) = self::session(&server).await;
    assert_all_there(&client, accepted.into_iter()).await;
    put(&session, 1, 1).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_sync_of_the_log_ends_all_writing() {
    fails_for_good("log-0000000000000001.hw", "fdatasync", "EIO").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_of_the_log_ends_all_writing() {
    fails_for_good("log-0000000000000001.hw", "pwrite64", "EIO").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_becomes_read_only_ends_all_writing() {
    fails_for_good("log-0000000000000001.hw", "pwrite64", "EROFS").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_sync_of_the_index_ends_all_writing() {
    fails_for_good("index.redb", "fdatasync", "EIO").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_of_the_index_ends_all_writing() {
    fails_for_good("index.redb", "pwrite64", "EIO").await;
}

/// Writes until the server is gone, and gives what was acknowledged.
async fn write_until_gone(server: &Server, most: u64) -> Vec<u64> {
    let mut acknowledged = Vec::new();
    let Ok(client) = Client::connect(
        &format!("http://{}", server.address),
        highwater_client::ClientOptions::default(),
    )
    .await
    else {
        return acknowledged;
    };
    let policy = crate::support::by_job();
    let Ok(domain) = client.create_domain(&jobs(), &policy).await else {
        return acknowledged;
    };
    let held: Authority = authority(domain.epochs.current().epoch, 1, "w");
    let session = client.session(jobs(), held);
    for number in 0..most {
        if put(&session, number, 900).await.is_err() {
            break;
        }
        acknowledged.push(number);
    }
    acknowledged
}

/// Whatever was acknowledged is there at the next start, which needs no help.
pub(crate) async fn assert_recovers(place: &Place, acknowledged: Vec<u64>) {
    let server = place.start(&SMALL);
    let (client, session) = session(&server).await;
    assert_all_there(&client, acknowledged.into_iter()).await;
    put(&session, MANY, 1).await.unwrap();
    server.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn death_at_any_system_call_loses_nothing() {
    let points = count("HIGHWATER_KILL_POINTS", 16);
    let calls = "pwrite64,fdatasync,fsync,rename,renameat,renameat2,fallocate,ftruncate,unlink";
    let (mut deaths, mut told) = (0, 0);
    for point in 1..=points {
        // Close together at the beginning, where a store is made, and further apart behind it.
        let at = if points > 100 {
            point
        } else {
            point * (point + 1) / 2
        };
        let inject = format!("-einject={calls}:signal=SIGKILL:when={at}");
        let trace = format!("-etrace={calls}");
        let Some(command) = traced(&["-o", "/dev/null", &trace, &inject]) else {
            return;
        };
        let place = Place::new();
        let mut acknowledged = Vec::new();
        match place.launch(command, &SMALL) {
            Err(_) => deaths += 1,
            Ok(server) => {
                acknowledged = write_until_gone(&server, 400).await;
                deaths += u64::from(acknowledged.len() < 400);
            }
        }
        told += acknowledged.len();
        assert_recovers(&place, acknowledged).await;
    }
    println!("{points} points, {deaths} deaths, {told} acknowledged, 0 lost");
    assert!(deaths > points / 2 && told > 0, "{deaths} {told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn death_in_the_first_moments_leaves_a_store_that_opens() {
    let mut random = Random::new();
    for _ in 0..count("HIGHWATER_YOUNG_DEATHS", 10) {
        let place = Place::new();
        let life = Duration::from_millis(1 + random.below(300));
        let acknowledged = match place.launch_for(life, &SMALL) {
            Err(_) => Vec::new(),
            Ok(server) => {
                let acknowledged = write_until_gone(&server, MANY).await;
                server.ended().await;
                acknowledged
            }
        };
        assert_recovers(&place, acknowledged).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_the_same_store_leaves_the_first_alone() {
    let place = Place::new();
    let first = place.start(&SMALL);
    let (_, session) = session(&first).await;
    put(&session, 0, 1).await.unwrap();
    let link = place.beside("link");
    symlink(place.data(), &link).unwrap();
    for path in [place.data(), link] {
        let refused = place.launch_at(&path, program(), &SMALL).err().unwrap();
        assert!(!refused.success());
        assert!(
            place.said().contains("another process has"),
            "{}",
            place.said()
        );
    }
    put(&session, 1, 1).await.unwrap();
    first.kill().await;
    assert_recovers(&place, vec![0, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_left_half_made_is_no_obstacle() {
    let place = Place::new();
    let server = place.start(&SMALL);
    let (_, session) = session(&server).await;
    for number in 0..50 {
        put(&session, number, 900).await.unwrap();
    }
    server.kill().await;
    for name in [
        "identity.tmp",
        "spare-00000000000000ff.hw.tmp",
        "index.redb.tmp",
    ] {
        std::fs::write(place.data().join(name), "half").unwrap();
    }
    std::fs::write(place.data().join("spare-00000000000000fe.hw"), "half").unwrap();
    assert_recovers(&place, (0..50).collect()).await;
}
