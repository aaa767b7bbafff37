//! Real directories of the operating system: what damage, strangers and crashes of creation do.

mod files;
mod keys;
mod limits;
mod pages;
mod space;
mod torn;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use highwater::{Config, OpenError, Store};
use highwater_tests::model::Model;
use highwater_tests::raw::{Change, Request};

use crate::support::{commit_in_both, open_domain, tight};

/// A directory with a store, the model of what is in it, and how it was left.
struct Left {
    dir: tempfile::TempDir,
    model: Model,
    /// The state before the last commit.
    before: Model,
    /// The files before the last commit.
    earlier: BTreeMap<String, Vec<u8>>,
}

fn put(name: &str, value: &[u8]) -> Request {
    let change = Change::Put(name.into(), value.into(), String::new());
    Request::of("d", vec![change])
}

/// Settings that keep everything in the log: no checkpoint is begun.
fn logged() -> Config {
    Config {
        log_bytes: 64 << 20,
        memory_bytes: 64 << 20,
        ..tight()
    }
}

impl Left {
    /// A store whose process was killed after so many commits, each with a value of so many bytes.
    fn killed(config: &Config, commits: usize, value_bytes: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let running = dir.path().join("running");
        let store = Store::open(&running, config.clone()).unwrap();
        let mut model = open_domain(&store);
        let (mut before, mut earlier) = (model.clone(), BTreeMap::new());
        for number in 0..commits {
            before = model.clone();
            if number + 1 == commits {
                earlier = contents(&running);
            }
            let request = put(&format!("k{number}"), &vec![b'v'; value_bytes]);
            assert_eq!(commit_in_both(&store, &mut model, &request), "Accepted");
        }
        // What a killed process leaves is what the files hold while it runs.
        copy(&running, &dir.path().join("store"));
        store.close().unwrap();
        Self {
            dir,
            model,
            before,
            earlier,
        }
    }

    fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    /// A copy to be damaged.
    fn copied(&self) -> PathBuf {
        let copy_dir = self.dir.path().join("damaged");
        if copy_dir.exists() {
            fs::remove_dir_all(&copy_dir).unwrap();
        }
        copy(&self.store(), &copy_dir);
        copy_dir
    }

    /// The log files in order, those that hold frames.
    fn log_files(&self) -> Vec<String> {
        let files = contents(&self.store());
        let is_log = |name: &&String| name.starts_with("log-") && has_frames(&files[*name]);
        files.keys().filter(is_log).cloned().collect()
    }
}

/// Whether anything was written behind the header block.
fn has_frames(file: &[u8]) -> bool {
    file.iter().skip(4_096).any(|byte| *byte != 0)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for (name, bytes) in contents(from) {
        fs::write(to.join(name), bytes).unwrap();
    }
}

/// Every file of a directory at one moment, also while a store works on it: read until it reads the
/// same twice. But for the lock, which is empty and comes and goes.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut before = read_all(dir);
    loop {
        let again = read_all(dir);
        if again == before {
            return again;
        }
        before = again;
    }
}

fn read_all(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name == "lock" {
            continue;
        }
        match fs::read(entry.path()) {
            Ok(bytes) => drop(files.insert(name, bytes)),
            // Renamed since it was listed.
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
        }
    }
    files
}

/// The refusal to open a directory, of which every byte stays as it is.
#[track_caller]
fn refused(dir: &Path, config: &Config) -> OpenError {
    let before = contents(dir);
    let error = Store::open(dir, config.clone()).map(|_| ()).unwrap_err();
    assert!(before == contents(dir), "the files were changed: {error}");
    error
}
