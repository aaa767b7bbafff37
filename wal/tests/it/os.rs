//! The log on the disk of the operating system.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use highwater_wal::{Disk, FrameBuf, Log, LogOptions, OsDisk};

use super::support::{LOG_ID, options, payload, segment};

#[test]
fn frames_survive_and_segments_have_all_their_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options();
    options.salts = LogOptions::new(LOG_ID).salts;
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.path()).unwrap());
    let mut expected = Vec::new();
    for run in 0..3 {
        let mut found = Vec::new();
        let (mut log, recovered) = Log::open(Arc::clone(&disk), options.clone(), &mut |lsn, p| {
            found.push((lsn.get(), p.to_vec()));
            Ok(())
        })
        .unwrap();
        assert!(found == expected);
        assert_eq!((recovered.created, recovered.closed), (run == 0, run == 2));
        let mut frame = FrameBuf::new();
        for _ in 0..20 {
            let lsn = expected.len() as u64 + 1;
            frame.clear();
            frame.extend_from_slice(&payload(lsn, run));
            assert_eq!(log.append(&mut frame).unwrap().lsn().get(), lsn);
            expected.push((lsn, payload(lsn, run)));
        }
        if run == 1 {
            log.close().unwrap();
        }
    }
    let metadata = std::fs::metadata(dir.path().join(segment(1))).unwrap();
    assert_eq!(metadata.len(), 65_536);
    assert!(
        metadata.blocks() * 512 >= 65_536,
        "blocks are reserved, not only promised"
    );
    assert_eq!(metadata.mode() & 0o077, 0, "only the owner reads the log");
}

#[test]
fn the_directory_must_exist_and_be_one() {
    let dir = tempfile::tempdir().unwrap();
    assert!(OsDisk::open(&dir.path().join("absent")).is_err());
    std::fs::write(dir.path().join("file"), b"").unwrap();
    assert!(OsDisk::open(&dir.path().join("file")).is_err());
}

#[test]
fn segments_can_be_made_and_recycled_beside_appends() {
    let dir = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.path()).unwrap());
    let (mut log, _) = Log::open(Arc::clone(&disk), options(), &mut |_, _| Ok(())).unwrap();
    let pool = log.pool();
    let (tell, told) = std::sync::mpsc::sync_channel(64);
    let keeper = std::thread::spawn(move || {
        while let Ok(lsn) = told.recv() {
            pool.recycle_through(lsn).unwrap();
            pool.ensure_spare().unwrap();
        }
    });
    let mut frame = FrameBuf::with_capacity(9000);
    frame.extend_with(|bytes| bytes.resize(bytes.len() + 9000, 1));
    for _ in 0..300 {
        tell.send(log.append(&mut frame).unwrap().lsn()).unwrap();
    }
    drop(tell);
    keeper.join().unwrap();
    assert_eq!((log.status().segments, log.status().spares), (1, 1));
    drop(log);
    let (_, recovered) = Log::open(disk, options(), &mut |_, _| Ok(())).unwrap();
    assert_eq!(recovered.last.map(|durable| durable.lsn().get()), Some(300));
}
