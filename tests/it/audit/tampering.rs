//! A trail that somebody has changed, and one that is damaged.

use std::sync::Arc;

use highwater::{AuditFault, AuditVerifyError, OpenError, Store, verify_audit_on};
use highwater_tests::disk::{Files, SimDisk};

use super::{audited, make, names, put};

fn trail() -> Files {
    let (disk, store) = make(&audited());
    for number in 0..400_u64 {
        store.commit(put(format!("k/{}", number % 9), "v")).unwrap();
    }
    store.close().unwrap();
    let files = disk.files();
    assert!(names(&files).len() >= 3);
    files
}

/// Where a walk finds the first thing that is wrong: file, line, and what.
fn found(files: &Files) -> Option<(String, u64, AuditFault)> {
    match verify_audit_on(&SimDisk::with_files(files)) {
        Ok(_) => None,
        Err(AuditVerifyError::Wrong { file, line, fault }) => Some((file, line, fault)),
        Err(error) => panic!("{error}"),
    }
}

fn with_lines(files: &Files, name: &str, change: impl Fn(&mut Vec<String>)) -> Files {
    let mut files = files.clone();
    let text = String::from_utf8(files[name].clone()).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    files.insert(name.into(), text.into_bytes());
    files
}

#[test]
fn a_changed_line_is_found_where_it_is() {
    let files = trail();
    assert_eq!(found(&files), None);
    for name in names(&files) {
        let count = files[&name].iter().filter(|byte| **byte == b'\n').count();
        for at in [0, count / 2, count - 1] {
            let changed = with_lines(&files, &name, |lines| {
                lines[at] = lines[at].replacen("\"time_ms\":\"1", "\"time_ms\":\"2", 1);
            });
            let line = at as u64 + 1;
            assert_eq!(
                found(&changed),
                Some((name.clone(), line, AuditFault::Line))
            );
        }
    }
}

#[test]
fn a_line_that_is_gone_or_doubled_or_moved_is_found_where_it_is() {
    let files = trail();
    let names = names(&files);
    let middle = &names[1];
    let gone = with_lines(&files, middle, |lines| drop(lines.remove(10)));
    let (file, line, fault) = found(&gone).unwrap();
    assert_eq!((&file, line), (middle, 11));
    assert!(matches!(fault, AuditFault::Sequence { expected, found } if found == expected + 1));
    let doubled = with_lines(&files, middle, |lines| lines.insert(11, lines[10].clone()));
    let (file, line, fault) = found(&doubled).unwrap();
    assert_eq!((&file, line), (middle, 12));
    assert!(matches!(fault, AuditFault::Sequence { expected, found } if found + 1 == expected));
    let moved = with_lines(&files, middle, |lines| lines.swap(4, 5));
    assert_eq!(found(&moved).unwrap().1, 5);
    let headless = with_lines(&files, middle, |lines| drop(lines.remove(0)));
    assert_eq!(
        found(&headless),
        Some((middle.clone(), 1, AuditFault::Name))
    );
    let short = with_lines(&files, middle, |lines| drop(lines.pop()));
    let (file, line, fault) = found(&short).unwrap();
    assert_eq!((&file, line), (&names[2], 1));
    assert!(matches!(fault, AuditFault::Sequence { .. }));
}

#[test]
fn a_file_that_is_gone_is_found_unless_retention_removed_it() {
    let files = trail();
    let names = names(&files);
    let without = |name: &String| {
        let mut files = files.clone();
        files.remove(name);
        found(&files)
    };
    let oldest = without(&names[0]);
    assert_eq!(oldest, Some((names[1].clone(), 1, AuditFault::Beginning)));
    let (file, line, fault) = without(&names[1]).unwrap();
    assert_eq!((&file, line), (&names[2], 1));
    assert!(matches!(fault, AuditFault::Sequence { .. }));
}

/// What is cut off the very end can't be told from the files, but that the end isn't an orderly one
/// can, and whoever kept the last digest knows.
#[test]
fn a_trail_without_its_end_is_not_closed() {
    let files = trail();
    let whole = verify_audit_on(&SimDisk::with_files(&files)).unwrap();
    assert!(whole.closed);
    let last = names(&files).pop().unwrap();
    let cut = with_lines(&files, &last, |lines| drop(lines.pop()));
    let cut = verify_audit_on(&SimDisk::with_files(&cut)).unwrap();
    assert!(!cut.closed);
    assert_eq!((cut.lines + 1, cut.last + 1), (whole.lines, whole.last));
    let mut torn = files.clone();
    torn.get_mut(&last).unwrap().pop();
    let lines = files[&last].iter().filter(|byte| **byte == b'\n').count() as u64;
    assert_eq!(found(&torn), Some((last, lines, AuditFault::Line)));
}

/// A line that was durable once is not taken for a torn one: the store stays shut, and nothing is
/// changed.
#[test]
fn a_store_does_not_open_over_a_damaged_trail() {
    let files = trail();
    let last = names(&files).pop().unwrap();
    let damaged = with_lines(&files, &last, |lines| {
        lines[1] = lines[1].replacen("\"time_ms\":\"1", "\"time_ms\":\"2", 1);
    });
    let disk = SimDisk::with_files(&damaged);
    let opened = Store::open_on(Arc::new(disk.clone()), audited());
    let Err(OpenError::Corrupt { file, offset, .. }) = opened else {
        panic!("it opens");
    };
    let first = files[&last].iter().position(|byte| *byte == b'\n').unwrap() as u64;
    assert_eq!((file, offset), (last.clone(), first + 1));
    assert_eq!(disk.files()[&last], damaged[&last]);
    // Moved away, another trail begins, and says what it doesn't know.
    let mut without = damaged.clone();
    without.retain(|name, _| !name.starts_with("audit-"));
    let disk = SimDisk::with_files(&without);
    let store = crate::support::open(&disk, &audited());
    let ends = store.revision().get();
    store.close().unwrap();
    assert_eq!(verify_audit_on(&disk).unwrap().revision, Some(ends));
}
