//! A disk without space, at every place where space is asked for.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use highwater_wal::{Disk, DiskFile, Lacking, Log, LogError, SegmentPool};

use super::sim::{Fault, Op, SimDisk};
use super::support::{Trace, count, open, options};

/// Runs to the fault, goes on after it, and checks that nothing confirmed is missing.
fn fills_up_at(at: usize, kind: ErrorKind) -> LogError {
    let disk = SimDisk::default();
    disk.set_fault(at, Fault::Error(kind));
    let mut trace = Trace::default();
    let mut log = match trace.open(&disk) {
        Ok(log) => log,
        Err(error) => {
            let mut log = trace.open(&disk).unwrap();
            trace.append(&mut log, 14, 0).unwrap();
            return error;
        }
    };
    let error = trace.append(&mut log, 14, 0).unwrap_err();
    assert!(!log.status().poisoned, "{error}");
    let (lsn, _) = trace.in_flight.take().unwrap();
    let (_, found) = open(&disk.after_kill()).unwrap();
    trace.check(&found);
    trace.append(&mut log, 14, 0).unwrap();
    assert!(trace.acked.contains_key(&lsn));
    drop(log);
    trace.open(&disk.after_kill()).unwrap();
    error
}

#[test]
fn a_full_disk_refuses_and_the_log_goes_on_once_there_is_space() {
    let clean = SimDisk::default();
    let mut trace = Trace::default();
    let mut log = trace.open(&clean).unwrap();
    trace.append(&mut log, 14, 0).unwrap();
    let mut tried = 0;
    for (at, (op, file)) in clean.ops().into_iter().enumerate() {
        let new_space = match op {
            Op::Create | Op::Allocate | Op::Rename => true,
            Op::Write | Op::SyncData => file.ends_with(".tmp"),
            _ => false,
        };
        if new_space {
            tried += 1;
            for kind in [
                ErrorKind::StorageFull,
                ErrorKind::QuotaExceeded,
                ErrorKind::FileTooLarge,
            ] {
                let error = fills_up_at(at, kind);
                let full = matches!(error, LogError::Full { .. });
                assert!(full, "operation {at}, {op:?}, {kind}: {error}");
            }
        }
    }
    // Each segment is created, reserved, written, synced, and renamed twice.
    assert_eq!(tried, 6 * count(&clean.ops(), Op::Create));
    assert_eq!(count(&clean.ops(), Op::Create), 3);
}

#[test]
fn a_spare_that_finds_no_space_leaves_no_file_and_a_usable_log() {
    let disk = SimDisk::default();
    let mut trace = Trace::default();
    let mut log = trace.open(&disk).unwrap();
    trace.append(&mut log, 2, 0).unwrap();
    let files = disk.files();
    disk.set_fault(disk.ops().len() + 2, Fault::Error(ErrorKind::StorageFull));
    assert!(matches!(log.ensure_spare(), Err(LogError::Full { .. })));
    assert_eq!(disk.files(), files);
    trace.append(&mut log, 3, 0).unwrap();
    log.ensure_spare().unwrap();
    assert_eq!(log.status().spares, 1);
    log.ensure_spare().unwrap();
    assert_eq!(log.status().spares, 1);
}

#[test]
fn a_spare_that_could_not_get_its_name_is_used_later() {
    let disk = SimDisk::default();
    let mut trace = Trace::default();
    let mut log = trace.open(&disk).unwrap();
    trace.append(&mut log, 8, 0).unwrap();
    log.ensure_spare().unwrap();
    // The next frame needs the next segment: header, sync, rename.
    for skip in [0, 2] {
        disk.set_fault(
            disk.ops().len() + skip,
            Fault::Error(ErrorKind::StorageFull),
        );
        let error = trace.append(&mut log, 1, 0).unwrap_err();
        assert!(matches!(error, LogError::Full { .. }), "{error}");
        assert_eq!((log.status().spares, log.status().segments), (1, 1));
    }
    trace.append(&mut log, 1, 0).unwrap();
    assert_eq!((log.status().spares, log.status().segments), (0, 2));
    assert_eq!(count(&disk.ops(), Op::Create), 2);
}

#[test]
fn a_spare_found_without_space_behind_it_is_removed() {
    for (fault, spares) in [(None, 1), (Some(0), 0)] {
        let disk = SimDisk::default();
        let (mut log, _) = open(&disk).unwrap();
        log.ensure_spare().unwrap();
        drop(log);
        let clean = disk.after_kill();
        open(&clean).unwrap();
        let allocate = clean
            .ops()
            .iter()
            .position(|(op, _)| *op == Op::Allocate)
            .unwrap();
        let disk = disk.after_kill();
        if let Some(skip) = fault {
            disk.set_fault(allocate + skip, Fault::Error(ErrorKind::StorageFull));
        }
        let (log, _) = open(&disk).unwrap();
        assert_eq!(log.status().spares, spares);
        let files = disk
            .files()
            .into_keys()
            .filter(|name| name.starts_with("spare-"));
        assert_eq!(files.count(), spares);
    }
}

/// A disk without file descriptors while it is told so, which notes at every file that is made what
/// the pool says it lacks.
#[derive(Clone, Debug, Default)]
struct Scarce {
    disk: SimDisk,
    lacks: Arc<AtomicBool>,
    pool: Arc<OnceLock<Arc<SegmentPool>>>,
    seen: Arc<Mutex<Vec<Option<Lacking>>>>,
}

impl Disk for Scarce {
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        if let Some(pool) = self.pool.get() {
            self.seen.lock().unwrap().push(pool.lacking());
        }
        if self.lacks.load(Ordering::SeqCst) {
            const EMFILE: i32 = 24;
            return Err(io::Error::from_raw_os_error(EMFILE));
        }
        self.disk.create(name)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(name)
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

#[test]
fn what_is_lacking_is_told_until_there_is_a_spare_and_no_longer() {
    let scarce = Scarce::default();
    let mut options = options();
    options.spare_segments = 2;
    let opened = Log::open(Arc::new(scarce.clone()), options, &mut |_, _| Ok(()));
    let pool = opened.unwrap().0.pool();
    scarce.pool.set(Arc::clone(&pool)).unwrap();
    assert_eq!(pool.lacking(), None);
    scarce.lacks.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        let error = pool.ensure_spare().unwrap_err();
        assert!(matches!(error, LogError::NoDescriptor { .. }), "{error}");
        assert_eq!(pool.lacking(), Some(Lacking::Descriptor));
    }
    scarce.lacks.store(false, Ordering::SeqCst);
    let full = Fault::Error(ErrorKind::StorageFull);
    scarce.disk.set_fault(scarce.disk.ops().len(), full);
    assert!(matches!(pool.ensure_spare(), Err(LogError::Full { .. })));
    assert_eq!(pool.lacking(), Some(Lacking::Space));
    scarce.seen.lock().unwrap().clear();
    pool.ensure_spare().unwrap();
    // With the first spare there is room already, while the second one is being made.
    let seen = scarce.seen.lock().unwrap().clone();
    assert_eq!(seen, [Some(Lacking::Space), None]);
    assert_eq!((pool.lacking(), pool.spares()), (None, 2));
}
