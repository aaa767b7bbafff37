//! A file system of a test's own, with a disk behind it that has a size and can fail.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::Place;

/// A file system in a file. It is unmounted when it is dropped.
pub(crate) struct Volume {
    image: PathBuf,
    pub(crate) mounted: PathBuf,
}

fn run(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

impl Volume {
    /// One that is mounted; `None` where that isn't possible, as without the rights to do it.
    pub(crate) fn make(place: &Place, bytes: u64) -> Option<Self> {
        let image = place.beside("image");
        let mounted = place.beside("mounted");
        std::fs::create_dir(&mounted).unwrap();
        let file = std::fs::File::create(&image).unwrap();
        file.set_len(bytes).unwrap();
        let made = run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image));
        let volume = Self { image, mounted };
        let usable = made && volume.mount() && volume.switch().exists();
        if !usable {
            println!("SKIPPED: no file system can be mounted here");
        }
        usable.then_some(volume)
    }

    pub(crate) fn mount(&self) -> bool {
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop,errors=remount-ro"]);
        run(mount.arg(&self.image).arg(&self.mounted))
    }

    pub(crate) fn unmount(&self) -> bool {
        run(Command::new("umount").arg(&self.mounted))
    }

    /// What is free on it, in bytes.
    pub(crate) fn free(&self) -> u64 {
        let mut ask = Command::new("df");
        ask.args(["--output=avail", "-B1"]).arg(&self.mounted);
        let said = String::from_utf8(ask.output().unwrap().stdout).unwrap();
        said.lines().last().unwrap().trim().parse().unwrap()
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

    pub(crate) fn turn_read_only(&self) {
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
