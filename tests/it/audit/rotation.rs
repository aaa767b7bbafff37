//! Files of bounded size, and the oldest of them removed.

use highwater::{AuditConfig, Config, verify_audit_on};

use super::{audited, changes, lines, make, names, number, of_kind, put, verified};
use crate::support::open;

#[test]
fn whole_oldest_files_go_and_the_rest_is_still_proved() {
    let audit = AuditConfig {
        file_bytes: 64 << 10,
        keep_bytes: 128 << 10,
        ..AuditConfig::default()
    };
    let config = Config {
        audit: Some(audit),
        ..audited()
    };
    let (disk, store) = make(&config);
    for number in 0..800_u64 {
        store.commit(put(format!("k/{}", number % 9), "v")).unwrap();
    }
    store.close().unwrap();
    drop(store);
    for _ in 0..3 {
        let files = disk.files();
        let lines = lines(&files);
        verified(&files, &lines);
        let sizes: Vec<_> = names(&files).iter().map(|name| files[name].len()).collect();
        assert!(sizes.iter().all(|size| *size <= 64 << 10), "{sizes:?}");
        // What tells of the last removal, and of the end, comes behind the bound.
        assert!(
            sizes.iter().sum::<usize>() <= (128 << 10) + 4_096,
            "{sizes:?}"
        );
        let first = number(&lines[0]["seq"]);
        assert!(first > 1, "the oldest are gone");
        assert_eq!(verify_audit_on(&disk).unwrap().first, first);
        // Those that are left are the newest, without a gap.
        let revisions: Vec<u64> = changes(&lines).into_keys().collect();
        let (begins, ends) = (revisions[0], revisions[revisions.len() - 1]);
        assert_eq!(revisions, (begins..=ends).collect::<Vec<_>>());
        let retention = of_kind(&lines, "retention");
        let told = retention
            .iter()
            .flat_map(|line| line["files"].as_array().unwrap());
        let last = told.map(|file| number(&file["last"])).max();
        assert_eq!(last, Some(first - 1));
        // The same once more, over an opening.
        let store = open(&disk, &config);
        assert_eq!(store.revision().get(), ends);
        for number in 0..100_u64 {
            store.commit(put(format!("k/{}", number % 9), "w")).unwrap();
        }
        store.close().unwrap();
    }
}
