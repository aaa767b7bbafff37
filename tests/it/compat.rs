//! Data directories that earlier versions wrote. Each must open in every later version and show
//! what was in it; `manifest.txt` beside it says what that is.
//!
//! `HIGHWATER_WRITE_FIXTURES=DIR` writes the directories of the present version into `DIR`. They
//! are made once, when a format is released, and never again.

use std::fs;
use std::path::{Path, PathBuf};

use highwater::{Admission, Config, GuardRule, HolderBinding, KeyRange, Policy, SaltSource, Store};
use highwater_tests::raw::{Auth, Change, Request};

use crate::support::{create, domain, fence, model_of, policies, rows, tight};

/// The formats that there are.
const FORMATS: [&str; 1] = ["v1"];
/// The ways in which a store was left.
const LEFT: [&str; 2] = ["closed", "killed"];

/// No checkpoint but the one that closing makes: the files stay small.
fn config() -> Config {
    Config {
        log_bytes: 64 << 20,
        memory_bytes: 64 << 20,
        salts: SaltSource::OperatingSystem,
        ..tight()
    }
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// A policy in words that stay when the code's own change.
fn settings(policy: &Policy) -> String {
    let guard = match policy.guard() {
        GuardRule::Key => "key".into(),
        GuardRule::Domain => "domain".into(),
        GuardRule::Prefix { delimiter, depth } => format!("{}{depth}", char::from(delimiter)),
    };
    let admission = match policy.admission() {
        Admission::Fenced => "fenced",
        Admission::Versioned => "versioned",
        Admission::Open => "open",
    };
    let binding = match policy.holder_binding() {
        HolderBinding::None => "none",
        HolderBinding::Prefix => "prefix",
        HolderBinding::Exact => "exact",
    };
    let step = policy.max_sequence_step().map_or(0, |step| step.get());
    format!("guard={guard} admission={admission} binding={binding} step={step}")
}

/// Everything that a store shows, one line for each thing.
fn manifest(store: &Store) -> String {
    let snapshot = store.snapshot().unwrap();
    let status = store.status();
    let mut text = format!(
        "destination {}\nincarnation {}\nrevision {}\n",
        status.destination, status.incarnation, status.revision
    );
    for made in snapshot.domains() {
        let epoch = made.epochs.current().epoch;
        let (name, created) = (made.name.to_string(), made.created_at);
        let settings = settings(&made.policy);
        text.push_str(&format!("domain {name} {settings} {epoch} {created}\n"));
        for (key, row) in rows(&snapshot, &name, &KeyRange::all(), 100) {
            let shown = |bytes: &[u8]| highwater::escape(bytes);
            let under = row.under.map(|(_, _, sequence)| sequence);
            text.push_str(&format!(
                "record {} {} {} {} {under:?} '{}' '{}'\n",
                shown(&key),
                row.generation,
                row.metageneration,
                row.changed,
                row.text,
                shown(&row.value),
            ));
        }
        for guard in ["", "a", "b", "a/b", "a/1", "gone"] {
            if let Some(fence) = fence(&snapshot, &name, guard.as_bytes()) {
                let holder = highwater::escape(&fence.holder);
                text.push_str(&format!("fence {guard} {}@{holder}\n", fence.sequence));
            }
        }
    }
    text
}

/// Puts a little of everything into a store.
fn populate(store: &Store) {
    let mut model = model_of(store);
    for (name, policy) in policies() {
        create(store, &mut model, name, policy);
    }
    for (name, world) in &model.worlds {
        let under = |sequence, holder: &[u8], change: Change| {
            let mut request = Request::of(name, vec![change]).under(Auth {
                epoch: world.epoch.0,
                mark: world.epoch.1,
                sequence,
                holder: holder.to_vec(),
            });
            request.caller = Some(holder.to_vec());
            let key = request.changes[0].key().unwrap().clone();
            let found = store
                .get(&domain(name), &crate::support::key(&key))
                .unwrap();
            let now = found.map_or(0, |record| record.generation.get());
            let request = request.when(highwater_tests::raw::Cond::GenerationIs(key, now));
            store.commit(request.typed().unwrap()).unwrap();
        };
        let put = |key: &str, value: &[u8], text: &str| {
            Change::Put(key.into(), value.into(), text.into())
        };
        under(5, b"w", put("a/1", b"one", "text/plain"));
        under(5, b"w", put("a/b/2", b"\x00\xFF bytes", ""));
        under(6, b"v", put("b", b"", ""));
        under(6, b"v", put("gone", b"x", ""));
        under(7, b"v", Change::Delete(b"gone".into()));
        under(
            7,
            b"v",
            Change::Label(b"a/1".into(), "application/json".into()),
        );
    }
}

/// The files of a store, but for the lock and for blank segments, which it makes itself.
fn keep(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = {
            let entry = entry.unwrap();
            (entry.path(), entry.file_name().into_string().unwrap())
        };
        if name != "lock" && !name.starts_with("spare-") {
            fs::copy(path, to.join(name)).unwrap();
        }
    }
}

fn write(to: &Path) {
    for left in LEFT {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), config()).unwrap();
        populate(&store);
        let to = to.join(left);
        if left == "closed" {
            store.close().unwrap();
        }
        keep(dir.path(), &to.join("data"));
        drop(store);
        let copy = tempfile::tempdir().unwrap();
        keep(&to.join("data"), &copy.path().join("data"));
        let store = Store::open(copy.path().join("data"), config()).unwrap();
        fs::write(to.join("manifest.txt"), manifest(&store)).unwrap();
    }
}

#[test]
fn every_format_that_was_ever_written_opens() {
    if let Some(to) = std::env::var_os("HIGHWATER_WRITE_FIXTURES") {
        write(Path::new(&to));
    }
    for format in FORMATS {
        for left in LEFT {
            let fixture = fixtures().join(format).join(left);
            let written = fs::read_to_string(fixture.join("manifest.txt")).unwrap();
            let copy = tempfile::tempdir().unwrap();
            let data = copy.path().join("data");
            keep(&fixture.join("data"), &data);
            // It opens, takes a commit, and shows the same and that after a checkpoint.
            let store = Store::open(&data, config()).unwrap();
            assert_eq!(manifest(&store), written, "{format} {left}");
            let before = store.revision();
            let change = Change::Put(b"new".into(), b"v".into(), String::new());
            let request = Request::of("leader", vec![change]).typed().unwrap();
            let receipt = store.commit(request).unwrap();
            assert_eq!(Some(receipt.revision), before.next());
            store.close().unwrap();
            let store = Store::open(&data, config()).unwrap();
            let delete = Request::of("leader", vec![Change::Delete(b"new".into())]);
            store.commit(delete.typed().unwrap()).unwrap();
            let now = manifest(&store).replace(
                &format!("revision {}", store.revision()),
                &format!("revision {before}"),
            );
            assert_eq!(now, written, "{format} {left}");
        }
    }
}
