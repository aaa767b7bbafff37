//! A file system that turns read-only under the store, for real: one of its own in a file, told to
//! fail by the kernel's own switch.

use std::path::{Path, PathBuf};
use std::process::Command;

use tonic_health::pb::health_check_response::ServingStatus;

use crate::faults::{
    assert_all_refused, assert_all_there, put, session, until_health_is, write_until_poisoned,
};
use crate::support::{Place, SMALL, program};

/// The size of the file system, in bytes: enough for the store under small bounds.
const IMAGE_BYTES: u64 = 64 << 20;

/// A file system in a file. It is unmounted when it is dropped.
struct Volume {
    image: PathBuf,
    mounted: PathBuf,
}

fn run(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

impl Volume {
    /// One that is mounted; `None` where that isn't possible, as without the rights to do it.
    fn make(place: &Place) -> Option<Self> {
        let image = place.beside("image");
        let mounted = place.beside("mounted");
        std::fs::create_dir(&mounted).unwrap();
        let file = std::fs::File::create(&image).unwrap();
        file.set_len(IMAGE_BYTES).unwrap();
        let made = run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image));
        let volume = Self { image, mounted };
        (made && volume.mount() && volume.switch().exists()).then_some(volume)
    }

    fn mount(&self) -> bool {
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop,errors=remount-ro"]);
        run(mount.arg(&self.image).arg(&self.mounted))
    }

    fn unmount(&self) -> bool {
        run(Command::new("umount").arg(&self.mounted))
    }

    /// The kernel's switch that reports an error of this file system to itself.
    fn switch(&self) -> PathBuf {
        let mut find = Command::new("findmnt");
        find.args(["-n", "-o", "SOURCE"]).arg(&self.mounted);
        let found = find.output().map(|output| output.stdout);
        let source = String::from_utf8(found.unwrap_or_default()).unwrap();
        let device = Path::new(source.trim()).file_name().unwrap_or_default();
        Path::new("/sys/fs/ext4")
            .join(device)
            .join("trigger_fs_error")
    }

    fn turn_read_only(&self) {
        std::fs::write(self.switch(), "1").unwrap();
        let probe = std::fs::write(self.mounted.join("probe"), "");
        let kind = probe.unwrap_err().kind();
        assert_eq!(kind, std::io::ErrorKind::ReadOnlyFilesystem);
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        self.unmount();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_system_that_turns_read_only_ends_all_writing() {
    let place = Place::new();
    let Some(volume) = Volume::make(&place) else {
        println!("SKIPPED: no file system can be mounted here");
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
