//! Real disks that fill up: what adds data is refused, nothing is lost, and writing goes on by
//! itself once there is room.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use highwater_client::{ClientError, Session};
use highwater_core::{Reason, Step, Unavailable};
use tonic_health::pb::health_check_response::ServingStatus;

use crate::faults::{MANY, assert_all_there, assert_recovers, health, put, session};
use crate::intents::{assert_told_again, id};
use crate::support::{Place, SMALL, TOO_LONG, count, jobs, key, program, value};
use crate::volume::Volume;

/// A small file system in memory. It goes when it is dropped.
struct Mount(std::path::PathBuf);

impl Mount {
    /// `None` where this process may not mount.
    fn new(at: &Path, kib: u64) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let size = format!("size={kib}k");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(at)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(at.to_owned())),
            _ => {
                println!("SKIPPED: may not mount a file system");
                None
            }
        }
    }

    fn resize(&self, kib: u64) {
        let size = format!("remount,size={kib}k");
        let status = Command::new("mount")
            .args(["-o", &size])
            .arg(&self.0)
            .status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn is_full(error: &ClientError) -> bool {
    let reason = error.rejection().map(|rejection| &rejection.reason);
    matches!(reason, Some(Reason::Unavailable(Unavailable::DiskFull)))
}

/// Writes until the disk is full, and gives how many were acknowledged.
async fn fill(session: &Session) -> u64 {
    for number in 0..MANY {
        match put(session, number, 1_000).await {
            Ok(()) => {}
            Err(error) => {
                assert!(is_full(&error), "{error:?}");
                return number;
            }
        }
    }
    panic!("the disk is never full")
}

/// Writes until it is taken.
async fn until_there_is_room(session: &Session) {
    let resumed = async {
        while let Err(error) = put(session, MANY + 1, 1_000).await {
            assert!(is_full(&error), "{error:?}");
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TOO_LONG, resumed).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_writes_until_there_is_room_and_loses_nothing() {
    for size in 0..count("HIGHWATER_DISK_SIZES", 4) {
        let kib = 1_600 + size * 148;
        let place = Place::new();
        let Some(mount) = Mount::new(&place.data(), kib) else {
            return;
        };
        let server = place.start(&SMALL);
        let (client, session) = session(&server).await;
        let written = fill(&session).await;
        assert_eq!(health(&server).await, ServingStatus::Serving);
        assert_all_there(&client, 0..written).await;
        session.delete(key("k/0")).await.unwrap();
        let gone = client.get(&jobs(), &key("k/0"), None).await.unwrap();
        assert_eq!(gone.record, None);
        if size % 2 == 0 {
            // It goes on by itself.
            mount.resize(64 << 10);
            until_there_is_room(&session).await;
            server.kill().await;
        } else {
            // It dies full, and is started with more room.
            server.kill().await;
            mount.resize(64 << 10);
        }
        println!("{kib} KiB: {written} written");
        assert_recovers(&place, (1..written).collect()).await;
        drop(mount);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_a_full_disk_refused_runs_once_there_is_room() {
    let place = Place::new();
    let Some(mount) = Mount::new(&place.data(), 1_600) else {
        return;
    };
    let server = place.start(&SMALL);
    let (client, session) = session(&server).await;
    let step = |name: &str| {
        let draft = session.draft().put(key("step"), value([7; 1_000]));
        let draft = draft.for_intent(id(name), Step::FIRST);
        draft.under(session.authority().clone())
    };
    let first = client.commit(&step("before")).await.unwrap();
    let written = fill(&session).await;
    let refused = client.commit(&step("full")).await.unwrap_err();
    assert!(is_full(&refused), "{refused:?}");
    assert_eq!(
        client.intent(&jobs(), &id("full")).await.unwrap().record,
        None
    );
    // What was answered before is told again, for it takes no room.
    assert_told_again(&client, &step("before"), &first).await;
    mount.resize(64 << 10);
    let taken = async {
        loop {
            match client.commit(&step("full")).await {
                Ok(receipt) => return receipt,
                Err(error) => assert!(is_full(&error), "{error:?}"),
            }
        }
    };
    let receipt = tokio::time::timeout(TOO_LONG, taken).await.unwrap();
    assert!(!receipt.replayed);
    assert_told_again(&client, &step("full"), &receipt).await;
    assert_told_again(&client, &step("before"), &first).await;
    assert_all_there(&client, 0..written).await;
    server.kill().await;
    drop(mount);
}

/// How large the disk is, what of it is left when the store begins, and what must still be left
/// when the store has no use for it: less than its index wants, more than its log does. In bytes.
const DISK: u64 = 32 << 20;
const LEFT: u64 = 7 << 20;
const UNUSED: u64 = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn room_that_is_too_little_for_the_index_is_left_to_others() {
    let place = Place::new();
    let Some(volume) = Volume::make(&place, DISK) else {
        return;
    };
    let filler = volume.mounted.join("filler");
    std::fs::write(
        &filler,
        vec![1; usize::try_from(volume.free() - LEFT).unwrap()],
    )
    .unwrap();
    let data = volume.mounted.join("data");
    let server = place.launch_at(&data, program(), &SMALL).unwrap();
    let (client, session) = session(&server).await;
    let written = fill(&session).await;
    // It looks for room again and again meanwhile, and holds what there is only to find it too
    // little.
    let given_back = async {
        for _ in 0..20 {
            assert!(is_full(&put(&session, MANY, 1_000).await.unwrap_err()));
            while volume.free() < UNUSED {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    };
    tokio::time::timeout(TOO_LONG, given_back).await.unwrap();
    assert_all_there(&client, 0..written).await;
    std::fs::remove_file(&filler).unwrap();
    until_there_is_room(&session).await;
    assert_all_there(&client, 0..written).await;
    server.kill().await;
    let server = place.launch_at(&data, program(), &SMALL).unwrap();
    assert_all_there(&server.client().await, 0..written).await;
    server.kill().await;
}
