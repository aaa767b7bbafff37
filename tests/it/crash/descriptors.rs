//! A segment of the log that can't be made: for want of file descriptors the store refuses for a
//! while and goes on by itself; a device that fails ends its writing.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use highwater::{Availability, Disk, DiskFile, Error, Store};
use highwater_tests::disk::SimDisk;
use highwater_tests::model::Model;
use highwater_tests::raw::{Change, Request};

use super::config;
use crate::support::{compare, open, open_domain};

/// What the operating system says.
const EIO: i32 = 5;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
/// What is said where nobody knows.
const UNKNOWN: &str = "Indeterminate";
/// How long descriptors that are free again may go unnoticed; only a hung test takes so long.
const LIMIT: Duration = Duration::from_secs(30);

/// A disk on which no file can be made while there is an error to give.
#[derive(Clone, Debug, Default)]
struct Barren {
    disk: SimDisk,
    errno: Arc<AtomicI32>,
}

impl Disk for Barren {
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        match self.errno.load(Ordering::SeqCst) {
            0 => self.disk.create(name),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        match self.errno.load(Ordering::SeqCst) {
            0 => self.disk.open(name),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.disk.sync_dir()
    }
}

fn put(number: usize) -> Request {
    let change = Change::Put(
        format!("k{number:05}").into(),
        vec![7; 3_000],
        String::new(),
    );
    Request::of("d", vec![change])
}

/// Commits in both; the code of a refusal. What is in flight when the store is poisoned is neither.
fn commit(store: &Store, model: &mut Model, request: &Request) -> Option<&'static str> {
    match store.commit(request.typed().unwrap()) {
        Ok(receipt) => {
            model.apply(request);
            assert_eq!(receipt.revision.get(), model.revision);
            None
        }
        Err(Error::Rejected(rejection)) => Some(rejection.reason.code()),
        Err(Error::Indeterminate) => Some(UNKNOWN),
        Err(error) => panic!("{error:?}"),
    }
}

/// Commits while no file can be made, until one isn't accepted; which, and as what.
fn starve(errno: i32) -> (Barren, Store, Model, (usize, &'static str)) {
    let barren = Barren::default();
    let store = Store::open_on(Arc::new(barren.clone()), config()).unwrap();
    let mut model = open_domain(&store);
    barren.errno.store(errno, Ordering::SeqCst);
    let refused = (0..1_000)
        .find_map(|number| commit(&store, &mut model, &put(number)).map(|code| (number, code)));
    (barren, store, model, refused.expect("a refusal"))
}

#[test]
fn without_file_descriptors_a_store_is_overloaded_until_there_are_some() {
    for errno in [EMFILE, ENFILE] {
        let (barren, store, mut model, (_, refused)) = starve(errno);
        assert_eq!(refused, "Overloaded");
        assert_ne!(store.status().availability, Availability::DiskFull);
        compare(&store.snapshot().unwrap(), &model);
        barren.errno.store(0, Ordering::SeqCst);
        let begun = Instant::now();
        while commit(&store, &mut model, &put(7)).is_some() {
            assert!(begun.elapsed() < LIMIT, "never noticed");
            std::thread::park_timeout(Duration::from_millis(5));
        }
        for number in 0..50 {
            assert_eq!(commit(&store, &mut model, &put(number)), None);
        }
        compare(&store.snapshot().unwrap(), &model);
        store.close().unwrap();
        compare(&open(&barren.disk, &config()).snapshot().unwrap(), &model);
    }
}

#[test]
fn a_device_that_fails_to_make_a_segment_ends_the_writing() {
    let (barren, store, mut model, (last, refused)) = starve(EIO);
    assert!(["Poisoned", UNKNOWN].contains(&refused), "{refused}");
    assert_eq!(store.status().availability, Availability::Poisoned);
    barren.errno.store(0, Ordering::SeqCst);
    assert_eq!(commit(&store, &mut model, &put(7)), Some("Poisoned"));
    drop(store);
    let store = open(&barren.disk, &config());
    if refused == UNKNOWN && store.revision().get() > model.revision {
        model.apply(&put(last));
    }
    compare(&store.snapshot().unwrap(), &model);
    assert_eq!(commit(&store, &mut model, &put(7)), None);
}
