//! The audit trail of a served store, shown and checked.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use super::support::{Ran, Server, highwater, run_with};

fn audit(dir: &Path, format: &str, args: &[&str]) -> Ran {
    let mut command = highwater();
    command.args(["-o", format, "audit"]).args(args);
    command.arg("--data-dir").arg(dir);
    run_with(command, b"")
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_trail = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "jsonl");
    paths.filter(is_trail).collect()
}

/// Some lines, and the epoch.
fn serve_some(dir: &TempDir) -> String {
    let mut server = Server::start_with(dir, &["--audit=refuse"]);
    let made = server.run(&["domain", "create", "jobs", "--guard=prefix"]);
    server.epoch = made.json()["epoch"].as_str().unwrap().to_owned();
    for number in 0..3 {
        let key = format!("j/{number}");
        let put = server.under(42, "b%0A", &["put", "jobs", &key, "a secret"]);
        assert_eq!(put.code, 0, "{}", put.stderr);
    }
    assert_eq!(
        server.under(41, "a", &["put", "jobs", "j/0", "late"]).code,
        3
    );
    let status = server.run(&["status"]).json();
    assert_eq!(status["counters"]["audit_refusing"], "0", "{status}");
    let epoch = server.epoch.clone();
    assert_eq!(server.stop(), 0);
    epoch
}

#[test]
fn the_trail_is_shown_as_it_is_and_checked() {
    let dir = TempDir::new().unwrap();
    let epoch = serve_some(&dir);
    let tail = audit(dir.path(), "json", &["tail", "-n", "5"]);
    assert_eq!(tail.code, 0, "{}", tail.stderr);
    let lines = tail.lines();
    let kinds: Vec<_> = lines
        .iter()
        .map(|line| line["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.len(), 5);
    assert_eq!(kinds[4], "closed");
    let refused: Vec<&Value> = lines
        .iter()
        .filter(|line| line["kind"] == "refused")
        .collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0]["presented"], format!("{epoch}/41@a"));
    assert_eq!(refused[0]["fence"], format!("{epoch}/42@b%0a"));
    let whole = audit(dir.path(), "json", &["tail", "-n", "1000"]);
    let stored: Vec<u8> = files(dir.path())
        .iter()
        .flat_map(|f| std::fs::read(f).unwrap())
        .collect();
    assert_eq!(whole.stdout, stored);
    assert!(!String::from_utf8(stored).unwrap().contains("secret"));
    let table = audit(dir.path(), "table", &["tail"]);
    let text = String::from_utf8(table.stdout).unwrap();
    assert!(
        text.contains(&format!("StaleTerm {epoch}/41@a j")),
        "{text}"
    );
    let verified = audit(dir.path(), "json", &["verify"]);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
    let verified = verified.json();
    assert_eq!(verified["closed"], true);
    assert_eq!(verified["last"], lines[4]["seq"]);
    assert_eq!(verified["digest"], lines[4]["digest"]);
    assert_eq!(verified["gaps"], "0");
}

#[test]
fn a_changed_trail_is_told_with_file_and_line_and_none_is_no_trail() {
    let dir = TempDir::new().unwrap();
    serve_some(&dir);
    let file = files(dir.path()).remove(0);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("j/1", "j/2")).unwrap();
    let line = text.lines().position(|line| line.contains("j/1")).unwrap() + 1;
    let name = file.file_name().unwrap().to_str().unwrap();
    let verified = audit(dir.path(), "table", &["verify"]);
    assert_eq!(verified.code, 1);
    let place = format!("{name}, line {line}: ");
    assert!(verified.stderr.contains(&place), "{}", verified.stderr);
    let none = TempDir::new().unwrap();
    for command in ["verify", "tail"] {
        let told = audit(none.path(), "json", &[command]);
        assert_eq!(
            (told.code, &told.json()["error"]),
            (1, &Value::from("failed"))
        );
    }
}
