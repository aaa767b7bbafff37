//! A file system that turns read-only under the store, for real: one of its own in a file, told to
//! fail by the kernel's own switch.

use tonic_health::pb::health_check_response::ServingStatus;

use crate::faults::{
    assert_all_refused, assert_all_there, put, session, until_health_is, write_until_poisoned,
};
use crate::support::{Place, SMALL, program};
use crate::volume::Volume;

/// The size of the file system, in bytes: enough for the store under small bounds.
const IMAGE_BYTES: u64 = 64 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_file_system_that_turns_read_only_ends_all_writing() {
    let place = Place::new();
    let Some(volume) = Volume::make(&place, IMAGE_BYTES) else {
        return;
    };
    let data = volume.mounted.join("data");
    let server = place.launch_at(&data, program(), &SMALL).unwrap();
    let (client, session) = session(&server).await;
    for number in 0..20 {
        put(&session, number, 100).await.unwrap();
    }
    let load = tokio::spawn({
        let session = session.clone();
        async move { write_until_poisoned(&session).await }
    });
    volume.turn_read_only();
    let (accepted, _) = load.await.unwrap();
    until_health_is(&server, ServingStatus::NotServing).await;
    assert_all_refused(&session).await;
    assert_all_there(&client, accepted.iter().copied()).await;
    let before = client.status().await.unwrap().revision;
    server.kill().await;

    // While it is read-only nothing opens, and nothing is lost by trying.
    let refused = place.launch_at(&data, program(), &SMALL);
    assert!(refused.is_err(), "opened on a read-only file system");
    assert!(
        volume.unmount() && volume.mount(),
        "it can't be mounted again"
    );

    let server = place.launch_at(&data, program(), &SMALL).unwrap();
    until_health_is(&server, ServingStatus::Serving).await;
    let (client, session) = self::session(&server).await;
    assert_all_there(&client, accepted.into_iter()).await;
    put(&session, 1, 1).await.unwrap();
    let after = client.status().await.unwrap().revision;
    assert!(after > before, "numbers start over: {after:?}, {before:?}");
}
