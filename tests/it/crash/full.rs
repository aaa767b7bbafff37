//! Disks that are full, at every size: what adds data is refused, what frees room isn't, reads go
//! on, and once there is room again the same store takes everything.

use std::sync::Arc;
use std::time::{Duration, Instant};

use highwater::{Error, Store};
use highwater_tests::chance::Chance;
use highwater_tests::disk::SimDisk;
use highwater_tests::model::Model;
use highwater_tests::raw::{Auth, Change, Request};

use super::config;
use super::errors::healthy;
use crate::support::{answer, compare, open, opinion, scale};

/// More than enough commits to fill any of the disks.
const COMMITS: u64 = 500;
/// How long room may take to be noticed; only a hung test takes so long.
const LIMIT: Duration = Duration::from_secs(30);
/// Between two sizes of disk, in bytes.
const STEP_BYTES: u64 = 8 << 10;

fn put(number: u64, chance: &mut Chance) -> Request {
    let value = vec![b'v'; 500 + chance.below(6_000)];
    let change = Change::Put(format!("new/{number:05}").into(), value, String::new());
    Request::of("d", vec![change])
}

/// Commits in both, and compares, unless the disk is full: then false.
fn took(store: &Store, model: &mut Model, request: &Request) -> bool {
    let verdict = store.commit(request.typed().unwrap());
    if let Err(Error::Rejected(rejection)) = &verdict
        && rejection.reason.code() == "DiskFull"
    {
        return false;
    }
    assert_eq!(answer(verdict), opinion(model, request));
    model.apply(request);
    true
}

/// Writes until the disk is full; false if it never was.
fn fill(store: &Store, model: &mut Model, chance: &mut Chance) -> bool {
    (0..COMMITS).any(|number| !took(store, model, &put(number, chance)))
}

/// Commits, and tries again while the store hasn't noticed that there is room: log and index look
/// for it on their own.
fn insist(store: &Store, model: &mut Model, request: &Request) {
    let begun = Instant::now();
    while !took(store, model, request) {
        assert!(begun.elapsed() < LIMIT, "room isn't noticed");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// On a full disk: reads, deletions and take-overs.
fn live_on(store: &Store, model: &mut Model, chance: &mut Chance) {
    compare(&store.snapshot().unwrap(), model);
    let (number, mark) = model.worlds["d"].epoch;
    let keys: Vec<_> = model.worlds["d"].rows.keys().take(3).cloned().collect();
    for key in keys {
        let delete = Request::of("d", vec![Change::Delete(key)]);
        assert!(took(store, model, &delete), "a deletion frees room");
        // A checkpoint that was under way may have made room meanwhile.
        took(store, model, &put(0, chance));
    }
    let fence = model.worlds["d"].fences.get(&b"new"[..]);
    let authority = Auth {
        epoch: number,
        mark,
        sequence: fence.map_or(1, |fence| fence.sequence + 1),
        holder: b"next".to_vec(),
    };
    let advance = Request::of("d", vec![Change::Advance(b"new".into())]).under(authority);
    assert!(took(store, model, &advance), "a take-over needs no data");
    compare(&store.snapshot().unwrap(), model);
}

/// Restarts on the disk as it is. It may be too full to open, but then nothing is lost.
fn restart(disk: &SimDisk, budget: u64, model: &Model) {
    let disk = SimDisk::with_files(&disk.files());
    disk.set_budget(Some(budget));
    match Store::open_on(Arc::new(disk.clone()), config()) {
        Ok(store) => compare(&store.snapshot().unwrap(), model),
        Err(error) => assert!(error.to_string().contains("space"), "{error}"),
    }
    disk.set_budget(None);
    compare(&open(&disk, &config()).snapshot().unwrap(), model);
}

#[test]
fn a_disk_of_any_size_may_fill_up_and_nothing_is_lost() {
    let sizes = scale("HIGHWATER_FULL_SIZES", 100);
    let (files, model) = healthy();
    let least = SimDisk::with_files(&files).used();
    let mut filled = 0;
    for size in 0..sizes {
        let budget = least + size * STEP_BYTES;
        let disk = SimDisk::with_files(&files);
        disk.set_budget(Some(budget));
        let mut model = model.clone();
        let mut chance = Chance::new(size);
        let Ok(store) = Store::open_on(Arc::new(disk.clone()), config()) else {
            restart(&disk, budget, &model);
            continue;
        };
        assert!(
            fill(&store, &mut model, &mut chance),
            "{budget} bytes never fill"
        );
        filled += 1;
        live_on(&store, &mut model, &mut chance);
        restart(&disk, budget, &model);
        disk.set_budget(None);
        for number in 0..20 {
            insist(&store, &mut model, &put(number, &mut chance));
        }
        compare(&store.snapshot().unwrap(), &model);
        store.close().unwrap();
        compare(&open(&disk, &config()).snapshot().unwrap(), &model);
    }
    assert!(filled * 2 > sizes, "{filled} of {sizes}");
}

/// Raises the fences of ever new guards, which needs no data, until not even that has room. How
/// often it was taken.
fn use_up_the_reserve(store: &Store, model: &mut Model) -> usize {
    let (number, mark) = model.worlds["d"].epoch;
    for guard in 0..100_000 {
        let authority = Auth {
            epoch: number,
            mark,
            sequence: 1,
            holder: vec![b'h'; 200],
        };
        let name = format!("guard-{guard:06}").into_bytes();
        let advance = Request::of("d", vec![Change::Advance(name)]).under(authority);
        if !took(store, model, &advance) {
            return guard;
        }
    }
    panic!("the reserve is never used up");
}

/// Uses the reserve up until these are refused as well. A checkpoint that was under way may make
/// room for some of them yet, and a few times over, but not for ever.
fn refuses_at_last(store: &Store, model: &mut Model, requests: &[&Request]) -> bool {
    (0..50).any(|_| {
        use_up_the_reserve(store, model);
        !requests.iter().any(|request| took(store, model, request))
    })
}

#[test]
fn once_the_room_kept_back_is_gone_everything_is_refused_for_the_full_disk() {
    let (files, model) = healthy();
    for size in (0..20).map(|size| size * 5) {
        let disk = SimDisk::with_files(&files);
        let mut model = model.clone();
        let store = open(&disk, &config());
        // Whatever is being made has its room by now.
        store.close().unwrap();
        let store = open(&disk, &config());
        disk.set_budget(Some(disk.used() + size * STEP_BYTES));
        let mut chance = Chance::new(size);
        assert!(fill(&store, &mut model, &mut chance));
        let delete = Request::of("d", vec![Change::Delete(b"k/1".into())]);
        let both = [&put(0, &mut chance), &delete];
        assert!(refuses_at_last(&store, &mut model, &both), "as `DiskFull`");
        // What is refused for another reason still is.
        let mut malformed = delete.clone();
        malformed.changes.push(Change::Delete(b"k/1".into()));
        let refused = store.commit(malformed.typed().unwrap()).unwrap_err();
        assert_eq!(refused.rejection().unwrap().reason.code(), "Malformed");
        compare(&store.snapshot().unwrap(), &model);
        drop(store);
        // An opening may tidy some room up. Once that is used, it is the same again.
        if let Ok(store) = Store::open_on(Arc::new(disk.clone()), config()) {
            assert!(fill(&store, &mut model, &mut chance));
            let both = [&put(1, &mut chance), &delete];
            assert!(refuses_at_last(&store, &mut model, &both));
            compare(&store.snapshot().unwrap(), &model);
        }
        disk.set_budget(None);
        let store = open(&disk, &config());
        insist(&store, &mut model, &put(2, &mut chance));
        compare(&store.snapshot().unwrap(), &model);
    }
}
