//! Rows that aren't what the format says, in pages that are.

use std::sync::atomic::{AtomicUsize, Ordering};

use highwater_core::codec::{encode_fence, encode_intent, encode_record};
use highwater_core::{
    Authority, DestinationId, Fence, Generation, Incarnation, IncarnationMark, IncarnationNumber,
    IntentState, Metadata, Metageneration, Value,
};
use highwater_wal::OsDisk;

use highwater_core::{DomainId, Guard, IntentId, IntentRecord, Key, KeyRange, Record, Revision};

use super::*;
use crate::tables::row_key;
use crate::tables::{DELETIONS, FENCES, INTENTS, RECORDS, STATE};

const DOMAIN: u32 = 7;

fn revision(count: u64) -> Revision {
    Revision::new((1 << 48) | count).unwrap()
}

fn record(generation: u64, changed_at: u64) -> Vec<u8> {
    let record = Record {
        generation: Generation::new(revision(generation).get()).unwrap(),
        metageneration: Metageneration::FIRST,
        changed_at: revision(changed_at),
        written_under: None,
        value: Value::new("v").unwrap(),
        metadata: Metadata::default(),
    };
    let mut row = Vec::new();
    encode_record(&record, &mut row);
    row
}

fn fence() -> Vec<u8> {
    let authority = Authority::parse("1.0000000000000001/9@h").unwrap();
    let fence = Fence {
        term: authority.term(),
        holder: authority.holder().clone(),
    };
    let mut row = Vec::new();
    encode_fence(&fence, &mut row);
    row
}

fn intent(changed_at: u64) -> Vec<u8> {
    let record = IntentRecord {
        state: IntentState::Open,
        binding: None,
        steps: Vec::new(),
        changed_at: revision(changed_at),
    };
    let mut row = Vec::new();
    encode_intent(&record, &mut row);
    row
}

/// An index up to revision 9 with these rows under the keys "a" and "b".
struct Made {
    snapshot: IndexSnapshot,
    /// Once it is closed, nothing is read any more.
    index: Index,
    _dir: tempfile::TempDir,
    told: Arc<AtomicUsize>,
}

fn made(records: [&[u8]; 2], fences: [&[u8]; 2], deletions: [u64; 2]) -> Made {
    let dir = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.path()).unwrap());
    let index = Index::open(&disk, 1 << 20).unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    index.faults().watch(Box::new(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    }));
    let number = IncarnationNumber::FIRST;
    let applied = Applied {
        destination: DestinationId::new([1; 16]),
        incarnation: Incarnation::new(number, IncarnationMark::new(1)),
        revision: revision(9),
        lsn: 1,
        remembers_since: revision(0),
        deletions: 2,
    };
    let domain = DomainId::new(DOMAIN).unwrap();
    let write = |database: &Database| -> Result<(), Failed> {
        let transaction = database.begin_write()?;
        for (at, name) in [b"a", b"b"].into_iter().enumerate() {
            let row = row_key(domain, name);
            let row = row.as_slice();
            transaction.open_table(RECORDS)?.insert(row, records[at])?;
            transaction.open_table(FENCES)?.insert(row, fences[at])?;
            transaction
                .open_table(DELETIONS)?
                .insert(row, deletions[at])?;
        }
        let state = applied.encode();
        transaction
            .open_table(STATE)?
            .insert(STATE_ROW, state.as_slice())?;
        Ok(transaction.commit()?)
    };
    index.call("test", write).unwrap();
    let snapshot = index.snapshot().unwrap().unwrap();
    Made {
        snapshot,
        index,
        _dir: dir,
        told,
    }
}

impl Made {
    /// The same with these rows of the intents "a" and "b".
    fn with_intents(mut self, intents: [&[u8]; 2]) -> Self {
        let domain = DomainId::new(DOMAIN).unwrap();
        let write = |database: &Database| -> Result<(), Failed> {
            let transaction = database.begin_write()?;
            for (name, bytes) in [b"a", b"b"].into_iter().zip(intents) {
                let row = row_key(domain, name);
                transaction
                    .open_table(INTENTS)?
                    .insert(row.as_slice(), bytes)?;
            }
            Ok(transaction.commit()?)
        };
        self.index.call("test", write).unwrap();
        self.snapshot = self.index.snapshot().unwrap().unwrap();
        self
    }

    /// Whether each of the ways to read the rows of a key works.
    fn reads(&self, name: &str) -> [bool; 3] {
        let domain = DomainId::new(DOMAIN).unwrap();
        let (key, guard) = (Key::new(name).unwrap(), Guard::new(name).unwrap());
        [
            self.snapshot.record(domain, &key).is_ok(),
            self.snapshot.fence(domain, &guard).is_ok(),
            self.snapshot.deleted_at(domain, &key).is_ok(),
        ]
    }

    /// A read failed by the file's and the row's name, and from then on every read does.
    #[track_caller]
    fn lost<T: std::fmt::Debug>(&self, read: Result<T, StorageError>, table: &str) {
        let error = read.unwrap_err();
        let told = error.to_string();
        assert!(matches!(error, StorageError::Row { .. }), "{error:?}");
        for part in [INDEX_FILE, table, "7/b"] {
            assert!(told.contains(part), "{told}");
        }
        assert_eq!(self.reads("a"), [false; 3]);
        assert_eq!(self.told.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn good_rows_are_read() {
    let (record, fence) = (record(3, 9), fence());
    let made = made([&record, &record], [&fence, &fence], [(1 << 48) | 9; 2]);
    let domain = DomainId::new(DOMAIN).unwrap();
    assert_eq!((made.reads("a"), made.reads("b")), ([true; 3], [true; 3]));
    let range = KeyRange::all();
    let rows: Result<Vec<_>, _> = made.snapshot.range(domain, &range).unwrap().collect();
    assert_eq!(rows.unwrap().len(), 2);
    let last = made.snapshot.last_deletion(domain, &range, &mut 9).unwrap();
    assert_eq!(last, Some(Some(revision(9))));
    assert_eq!(made.told.load(Ordering::SeqCst), 0);
}

#[test]
fn a_bad_record_is_told_and_ends_all_reading() {
    let (good, fence) = (record(3, 9), fence());
    let mut long = good.clone();
    long.push(0);
    let short = &good[..good.len() - 1];
    for bad in [
        &[][..],
        short,
        &long,
        &record(3, 10),
        &record(10, 10),
        &record(5, 4),
    ] {
        let rows = || made([&good, bad], [&fence, &fence], [(1 << 48) | 9; 2]);
        let domain = DomainId::new(DOMAIN).unwrap();
        let one = rows();
        assert_eq!(one.reads("a"), [true; 3]);
        one.lost(
            one.snapshot.record(domain, &Key::new("b").unwrap()),
            "records",
        );
        let all = rows();
        let range = KeyRange::all();
        let mut walk = all.snapshot.range(domain, &range).unwrap();
        assert!(walk.next().unwrap().is_ok());
        all.lost(walk.next().unwrap(), "records");
        assert!(walk.next().is_none());
    }
}

#[test]
fn a_bad_intent_is_told_and_ends_all_reading() {
    let (record, fence, good) = (record(3, 9), fence(), intent(9));
    let mut long = good.clone();
    long.push(0);
    let short = &good[..good.len() - 1];
    let domain = DomainId::new(DOMAIN).unwrap();
    let id = |name: &str| IntentId::new(name).unwrap();
    let rows = |second: &[u8]| {
        let made = made([&record, &record], [&fence, &fence], [(1 << 48) | 9; 2]);
        made.with_intents([&good, second])
    };
    let fine = rows(&good);
    let names = |after: Option<&IntentId>| {
        let rows = fine.snapshot.intents_after(domain, after).unwrap();
        rows.map(|row| row.unwrap().0).collect::<Vec<_>>()
    };
    assert_eq!(names(None), [id("a"), id("b")]);
    assert_eq!(names(Some(&id("a"))), [id("b")]);
    for bad in [&[][..], short, &long, &intent(10)] {
        let one = rows(bad);
        assert!(one.snapshot.intent(domain, &id("a")).is_ok());
        one.lost(one.snapshot.intent(domain, &id("b")), "intents");
        let all = rows(bad);
        let mut walk = all.snapshot.intents_after(domain, None).unwrap();
        assert!(walk.next().unwrap().is_ok());
        all.lost(walk.next().unwrap(), "intents");
        assert!(walk.next().is_none(), "it ends at its first error");
    }
}

#[test]
fn a_bad_fence_or_deletion_is_told_and_ends_all_reading() {
    let (record, fence) = (record(3, 9), fence());
    let short = &fence[..fence.len() - 1];
    let domain = DomainId::new(DOMAIN).unwrap();
    for bad in [&[][..], short, &[0; 40]] {
        let made = made([&record, &record], [&fence, bad], [(1 << 48) | 9; 2]);
        assert_eq!(made.reads("a"), [true; 3]);
        made.lost(
            made.snapshot.fence(domain, &Guard::new("b").unwrap()),
            "fences",
        );
    }
    for bad in [0, 9, (1 << 48) | 10] {
        let rows = || made([&record, &record], [&fence, &fence], [(1 << 48) | 9, bad]);
        let one = rows();
        one.lost(
            one.snapshot.deleted_at(domain, &Key::new("b").unwrap()),
            "deletions",
        );
        let all = rows();
        let range = KeyRange::all();
        all.lost(
            all.snapshot.last_deletion(domain, &range, &mut 9),
            "deletions",
        );
    }
}
