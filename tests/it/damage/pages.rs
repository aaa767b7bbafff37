//! The index changes behind the back of an open store, or its device stops reading: told as what it
//! is, never read as data, and no more is written.

use std::time::{Duration, Instant};

use highwater::{Availability, Config, Disk, Error, KeyRange, OpenError, Store};
use highwater_tests::chance::Chance;
use highwater_tests::disk::{Fault, Files, Op, SimDisk};
use highwater_tests::model::Model;
use highwater_tests::raw::{Auth, Change, Cond, Request};
use highwater_tests::seen;

use super::put;
use crate::support::{answer, compare, domain, key, open, open_domain, opinion, scale, tight};

const INDEX: &str = "index.redb";
const PAGE: usize = 4_096;
const KEYS: usize = 1_000;
/// How long a failed checkpoint may take to show; only a hung test takes so long.
const LIMIT: Duration = Duration::from_secs(60);

/// Settings under which the index is larger than what of it is held in memory.
fn config() -> Config {
    Config {
        index_cache_bytes: 1 << 20,
        ..tight()
    }
}

fn name(number: usize) -> String {
    format!("k{number:05}")
}

fn authority(model: &Model, sequence: u64) -> Auth {
    let (epoch, mark) = model.worlds["d"].epoch;
    let holder = b"holder".to_vec();
    Auth {
        epoch,
        mark,
        sequence,
        holder,
    }
}

/// A closed store with records, fences and deletions in its index.
fn filled() -> (Files, Model) {
    let disk = SimDisk::default();
    let store = open(&disk, &config());
    let mut model = open_domain(&store);
    for batch in 0..KEYS / 10 {
        let numbers = batch * 10..batch * 10 + 10;
        let change = |number: usize| {
            let value = format!("<{number:05}>").repeat(400).into_bytes();
            Change::Put(name(number).into(), value, String::new())
        };
        let request = Request::of("d", numbers.map(change).collect());
        let request = request.under(authority(&model, 5));
        store.commit(request.typed().unwrap()).unwrap();
        model.apply(&request);
    }
    for number in (0..KEYS).step_by(50) {
        let gone = Request::of("d", vec![Change::Delete(name(number).into())]);
        store.commit(gone.typed().unwrap()).unwrap();
        model.apply(&gone);
    }
    store.close().unwrap();
    model.floor = 0;
    (disk.files(), model)
}

/// What of the store was answered and what failed.
#[derive(Default, Debug)]
struct Seen {
    answered: usize,
    failed: usize,
}

impl Seen {
    /// An answer must be the right one, a failure typed and by the file's name.
    #[track_caller]
    fn note<T: PartialEq + std::fmt::Debug>(&mut self, got: Result<T, Error>, expected: &T) {
        match got {
            Ok(got) => {
                assert_eq!(got, *expected);
                self.answered += 1;
            }
            Err(error) => {
                assert!(matches!(error, Error::Storage(_)), "{error:?}");
                assert!(error.to_string().contains(INDEX), "{error}");
                self.failed += 1;
            }
        }
    }
}

/// Asks for everything that there is, key by key and as a whole.
fn ask(store: &Store, model: &Model) -> Seen {
    let mut seen = Seen::default();
    let world = &model.worlds["d"];
    let snapshot = store.snapshot().unwrap();
    let all = snapshot.scan(&domain("d"), &KeyRange::all(), KEYS);
    let all = all.map(|page| page.records.len() + usize::from(page.next.is_some()));
    let whole = snapshot.scan(&domain("d"), &KeyRange::all(), 1).is_ok() && all.is_ok();
    seen.answered += usize::from(whole);
    seen.failed += usize::from(!whole);
    for number in 0..KEYS {
        let name = name(number);
        let record = snapshot.get(&domain("d"), &key(&name));
        let record = record.map(|found| found.as_deref().map(seen::row));
        seen.note(record, &world.rows.get(name.as_bytes()).cloned());
        let guard = highwater::Guard::new(&name).unwrap();
        let fence = snapshot.fence(&domain("d"), &guard);
        let fence = fence.map(|found| found.as_ref().map(seen::fence));
        seen.note(fence, &world.fences.get(name.as_bytes()).cloned());
    }
    seen
}

/// No old holder gets in, whatever became of the fences.
fn stale_writers_are_refused(store: &Store, model: &Model) {
    for number in (0..KEYS).step_by(17) {
        let request = put(&name(number), b"stale").under(authority(model, 4));
        match store.commit(request.typed().unwrap()) {
            Err(Error::Rejected(rejection)) => {
                let code = rejection.reason.code();
                assert!(["StaleTerm", "Poisoned"].contains(&code), "{rejection}");
            }
            Err(error) => assert!(error.to_string().contains(INDEX), "{error}"),
            Ok(receipt) => panic!("{number} was written at {}", receipt.revision),
        }
    }
}

type Harm = fn(&SimDisk, &[u8]);

fn overwrite(disk: &SimDisk, at: usize, bytes: &[u8]) {
    let file = disk.open(INDEX).unwrap();
    file.write_all_at(at as u64, bytes).unwrap();
}

fn flip_in_every_page(disk: &SimDisk, index: &[u8]) {
    for at in (PAGE..index.len()).step_by(PAGE) {
        let place = at + (at / PAGE) * 577 % PAGE;
        overwrite(disk, place, &[index[place] ^ 0x20]);
    }
}

fn zero_every_page(disk: &SimDisk, index: &[u8]) {
    overwrite(disk, PAGE, &vec![0; index.len() - PAGE]);
}

fn fill_every_page(disk: &SimDisk, index: &[u8]) {
    overwrite(disk, PAGE, &vec![0xFF; index.len() - PAGE]);
}

/// Every page is a whole and good one, in the place of another.
fn turn_pages_round(disk: &SimDisk, index: &[u8]) {
    for (number, page) in index.chunks(PAGE).skip(1).enumerate() {
        let pages = index.len() / PAGE - 1;
        overwrite(disk, PAGE + (number + 1) % pages * PAGE, page);
    }
}

fn cut_short(disk: &SimDisk, _index: &[u8]) {
    disk.open(INDEX).unwrap().set_len(PAGE as u64).unwrap();
}

const HARMS: [Harm; 5] = [
    flip_in_every_page,
    zero_every_page,
    fill_every_page,
    turn_pages_round,
    cut_short,
];

#[test]
fn pages_that_change_under_an_open_store_are_told_and_never_read() {
    let (files, model) = filled();
    let index = &files[INDEX];
    assert!(index.len() > 2 << 20, "the index fits into its cache");
    for harm in HARMS {
        let disk = SimDisk::with_files(&files);
        let store = open(&disk, &config());
        harm(&disk, index);
        let seen = ask(&store, &model);
        assert!(seen.failed > KEYS / 4, "{seen:?}");
        stale_writers_are_refused(&store, &model);
        assert_eq!(store.status().availability, Availability::Poisoned);
        let refused = store.commit(put("new", b"v").typed().unwrap()).unwrap_err();
        assert_eq!(refused.rejection().unwrap().reason.code(), "Poisoned");
        drop(store);
        // The opening tells it again, and the right file opens: nothing else was touched.
        let mut left = disk.files();
        match Store::open_on(std::sync::Arc::new(disk.clone()), config()) {
            Ok(store) => compare(&store.snapshot().unwrap(), &model),
            Err(error) => {
                let typed = matches!(error, OpenError::Index(_) | OpenError::Corrupt { .. });
                assert!(typed && error.to_string().contains(INDEX), "{error}");
            }
        }
        left.insert(INDEX.into(), index.clone());
        let store = open(&SimDisk::with_files(&left), &config());
        compare(&store.snapshot().unwrap(), &model);
    }
}

#[test]
fn an_index_that_nobody_harms_answers_everything() {
    let (files, model) = filled();
    let store = open(&SimDisk::with_files(&files), &config());
    let seen = ask(&store, &model);
    assert!(
        seen.failed == 0 && seen.answered == 1 + 2 * KEYS,
        "{seen:?}"
    );
    stale_writers_are_refused(&store, &model);
    assert_eq!(store.status().availability, Availability::Ready);
    store.commit(put("new", b"v").typed().unwrap()).unwrap();
}

/// Puts new keys until no more are taken; what that was told as.
fn put_until_refused(store: &Store) -> Vec<Error> {
    let begun = Instant::now();
    let mut errors = Vec::new();
    for number in 0.. {
        assert!(begun.elapsed() < LIMIT, "never poisoned: {errors:?}");
        let request = put(&format!("new/{number:06}"), &[7; 2_000]);
        match store.commit(request.typed().unwrap()) {
            Ok(_) => {}
            Err(error) => {
                let code = error.rejection().map(|rejection| rejection.reason.code());
                errors.push(error);
                if code == Some("Poisoned") {
                    break;
                }
            }
        }
    }
    errors
}

#[test]
fn a_checkpoint_that_cannot_read_its_index_is_no_full_disk() {
    let (files, model) = filled();
    for op in [Op::Read, Op::Allocate] {
        let disk = SimDisk::with_files(&files);
        let store = open(&disk, &config());
        disk.plant(Fault {
            op,
            file: "index",
            nth: 1,
            sticky: true,
        });
        for error in put_until_refused(&store) {
            let code = error.rejection().map(|rejection| rejection.reason.code());
            let told = match code {
                Some(code) => code == "Poisoned",
                // What was in flight when the checkpoint failed.
                None if matches!(error, Error::Indeterminate) => true,
                None => error.to_string().contains(INDEX),
            };
            assert!(told, "{op:?}: {error:?}");
        }
        // It isn't tried again, neither by itself nor because it is asked to.
        let tried = (disk.count(Op::Open), disk.count(op));
        for _ in 0..20 {
            let refused = store.commit(put("more", b"v").typed().unwrap());
            let refused = refused.unwrap_err();
            assert_eq!(refused.rejection().unwrap().reason.code(), "Poisoned");
            std::thread::park_timeout(Duration::from_millis(20));
        }
        assert_eq!(tried, (disk.count(Op::Open), disk.count(op)));
        disk.heal();
        drop(store);
        let store = open(&disk, &config());
        let row = store.get(&domain("d"), &key(name(1))).unwrap();
        let expected = model.worlds["d"].rows.get(name(1).as_bytes());
        assert_eq!(row.as_deref().map(seen::row).as_ref(), expected);
        store.commit(put("more", b"v").typed().unwrap()).unwrap();
    }
}

#[test]
fn a_condition_is_never_judged_on_harmed_pages() {
    let (files, model) = filled();
    let since = model.revision;
    for harm in HARMS {
        let disk = SimDisk::with_files(&files);
        let store = open(&disk, &config());
        store
            .commit(put("k00001", b"later").typed().unwrap())
            .unwrap();
        harm(&disk, &files[INDEX]);
        for (cond, holds) in [
            (Cond::PrefixSince(b"k0".to_vec(), since - 15), false),
            (Cond::KeySince(name(50).into_bytes(), since - 30), false),
            (Cond::GenerationIs(name(7).into_bytes(), 0), false),
            (Cond::GenerationIs(name(50).into_bytes(), 0), true),
        ] {
            let request = put("other", b"v").when(cond.clone());
            match store.commit(request.typed().unwrap()) {
                Ok(_) => assert!(holds, "{cond:?} held"),
                Err(Error::Rejected(rejection)) => {
                    let code = rejection.reason.code();
                    let right = ["Poisoned", "TooOld"].contains(&code)
                        || (code == "ConditionFailed" && !holds);
                    assert!(right, "{rejection}");
                }
                Err(error) => assert!(error.to_string().contains(INDEX), "{error}"),
            }
        }
    }
}

/// Harms some pages in the middle of a workload; whether the store noticed.
fn harm_some_pages(files: &Files, model: &Model, chance: &mut Chance) -> bool {
    let disk = SimDisk::with_files(files);
    let store = open(&disk, &config());
    let mut model = model.clone();
    let (mut noticed, mut in_doubt, harmed_at) = (false, None, chance.below(40));
    for step in 0..80 {
        if step == harmed_at {
            let index = &disk.files()[INDEX];
            for _ in 0..1 + chance.below(60) {
                let at = PAGE + chance.below(index.len() - PAGE);
                overwrite(&disk, at, &[index[at] ^ (1 << chance.below(8))]);
            }
        }
        let name = name(chance.below(KEYS));
        let change = match chance.below(3) {
            0 => Change::Delete(name.clone().into()),
            _ => Change::Put(name.clone().into(), chance.bytes(3_000), String::new()),
        };
        let cond = Cond::GenerationIsNot(name.clone().into(), 0);
        let request = Request::of("d", vec![change]).when(cond);
        let request = request.under(authority(&model, 4 + chance.below(3) as u64));
        let state = model.worlds["d"].rows.get(name.as_bytes()).cloned();
        match store.commit(request.typed().unwrap()) {
            Err(Error::Rejected(rejection)) if rejection.reason.code() == "Poisoned" => {
                noticed = true;
            }
            Err(Error::Storage(error)) => {
                assert!(error.to_string().contains(INDEX), "{error}");
                noticed = true;
            }
            // The checkpoint found the damage while this was in flight.
            Err(Error::Indeterminate) => {
                assert!(!noticed, "only what was in flight is in doubt");
                noticed = true;
                let mut written = model.clone();
                written.apply(&request);
                in_doubt = Some(written);
            }
            verdict => {
                assert!(!noticed, "{verdict:?} after damage was found");
                assert_eq!(answer(verdict), opinion(&model, &request), "{state:?}");
                if model.judge(&request).is_ok() {
                    model.apply(&request);
                }
            }
        }
        let got = store.get(&domain("d"), &key(&name));
        match got.map(|found| found.as_deref().map(seen::row)) {
            Ok(found) => assert_eq!(found, model.worlds["d"].rows.get(name.as_bytes()).cloned()),
            Err(error) => assert!(error.to_string().contains(INDEX), "{error}"),
        }
    }
    drop(store);
    // Noticed or not: what opens again is the whole truth, or it is refused.
    match Store::open_on(std::sync::Arc::new(disk), config()) {
        Ok(store) => {
            let written = in_doubt.filter(|written| written.revision == store.revision().get());
            compare(&store.snapshot().unwrap(), &written.unwrap_or(model));
        }
        Err(error) => assert!(error.to_string().contains(INDEX), "{error}"),
    }
    noticed
}

#[test]
fn bits_that_change_under_a_working_store_never_change_an_answer() {
    let runs = scale("HIGHWATER_PAGE_RUNS", 60);
    let (files, model) = filled();
    let noticed = (0..runs).filter(|seed| {
        let mut chance = Chance::new(*seed);
        harm_some_pages(&files, &model, &mut chance)
    });
    let noticed = noticed.count() as u64;
    assert!(noticed * 4 > runs, "only {noticed} of {runs} were noticed");
    println!("{noticed} of {runs} were noticed at work");
}
