//! What goes in and out: numbers, bytes, and an output that nobody reads.

use std::process::Stdio;

use tempfile::TempDir;

use crate::support::{ODD, Ran, Server, has_small_numbers_alone, run};

#[test]
fn numbers_above_2_to_the_53_are_exact_in_every_json_output() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let mut outputs = Vec::new();
    for sequence in [ODD, u64::MAX - 1] {
        let text = sequence.to_string();
        let put = server.under(sequence, "w", &["put", "jobs", "j/r", "v"]);
        assert_eq!(
            put.json()["receipt"]["guards"][0]["fence"]["sequence"],
            text.as_str()
        );
        let fence = server.run(&["fence", "show", "jobs", "--key", "j/x"]);
        assert_eq!(fence.json()["fence"]["sequence"], text.as_str());
        let stale = server.under(sequence - 1, "w", &["put", "jobs", "j/r", "v"]);
        let presented = format!("{}/{}@w", server.epoch, sequence - 1);
        assert_eq!(stale.json()["presented"], presented.as_str());
        assert_eq!(stale.json()["observed"]["fence"]["sequence"], text.as_str());
        outputs.extend([put, fence, stale]);
    }
    let full = u64::MAX;
    let foreign = format!("--authority={full}.{full:016x}/{ODD}@w");
    let foreign = server.run(&[&foreign, "put", "jobs", "j/r", "v"]);
    let presented = format!("{full}.{full:016x}/{ODD}@w");
    assert_eq!(foreign.json()["presented"], presented.as_str());
    let read = server.run(&["get", "jobs", "j/r"]);
    let generation: u64 = read.json()["generation"].as_str().unwrap().parse().unwrap();
    let revision: u64 = read.json()["revision"].as_str().unwrap().parse().unwrap();
    assert_eq!(generation, revision);
    let unchanged = format!("--if-unchanged-since={}", u64::MAX);
    let judged = server.under(
        u64::MAX - 1,
        "w",
        &["delete", "jobs", "j/r", "--dry-run", &unchanged],
    );
    outputs.extend([foreign, read, judged]);
    outputs.extend([
        server.run(&["status"]),
        server.run(&["domain", "list"]),
        server.run(&["domain", "show", "jobs"]),
        server.run(&["scan", "jobs"]),
        run(&["-o", "json", "demo"]),
    ]);
    for line in outputs.iter().flat_map(Ran::lines) {
        assert!(has_small_numbers_alone(&line), "{line}");
    }
}

#[test]
fn keys_and_values_are_bytes() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let bytes: Vec<u8> = (0..=255).collect();
    let path = dir.path().with_extension("value");
    std::fs::write(&path, &bytes).unwrap();
    let at = format!("@{}", path.display());
    // The key 00 0a ff 25, once as text and once as base64.
    assert_eq!(
        server
            .under(1, "w", &["put", "jobs", "%00%0A%ff%25", &at])
            .code,
        0
    );
    std::fs::remove_file(&path).unwrap();
    let raw = server.run(&["--key-base64", "get", "jobs", "AAr/JQ==", "--raw"]);
    assert_eq!((raw.code, raw.stdout), (0, bytes));
    let read = server.run(&["get", "jobs", "%00%0a%FF%25"]).json();
    assert_eq!(read["key"], "%00%0a%ff%25");
    assert!(read.get("value").is_none());
    assert!(
        read["value_base64"]
            .as_str()
            .unwrap()
            .starts_with("AAECAwQF")
    );
    // Keys that imitate a line, a field and a record; each stays one object with its bytes.
    for key in [
        "a%0a{\"key\":\"forged\"}",
        "a%1b[2J",
        "a%e2%80%a8",
        "%ff%ff",
        "a\"b",
    ] {
        assert_eq!(server.under(1, "w", &["put", "jobs", key, "x"]).code, 0);
    }
    let rows = server.run(&["scan", "jobs"]).lines();
    assert_eq!(rows.len(), 6);
    let rows = server.run(&["scan", "jobs", "--prefix", "%ff"]).lines();
    assert_eq!((rows.len(), &rows[0]["key"]), (1, &"%ff%ff".into()));
    // An empty value is a value.
    assert_eq!(server.under(1, "w", &["put", "jobs", "empty", ""]).code, 0);
    let raw = server.run(&["get", "jobs", "empty", "--raw"]);
    assert_eq!((raw.code, raw.stdout.len()), (0, 0));
    assert_eq!(server.run(&["get", "jobs", "empty"]).json()["value"], "");
    let base64 = server.under(1, "w", &["put", "jobs", "empty", "AP8=", "--value-base64"]);
    assert_eq!(base64.code, 0);
    assert_eq!(
        server.run(&["get", "jobs", "empty", "--raw"]).stdout,
        [0, 255]
    );
    assert_eq!(server.run(&["get", "jobs", ""]).code, 2);
}

#[test]
fn nobody_reading_is_no_error() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    assert_eq!(server.under(1, "w", &["put", "jobs", "j/r", "v"]).code, 0);
    for args in [
        &["scan", "jobs"][..],
        &["completions", "bash"],
        &["domain", "list"],
    ] {
        let mut child = server.command(args).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{args:?}");
    }
}
