//! Writes whose answer can't be told: the script that sent them must not send them again.

use std::fs::File;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::{Server, highwater, run_with};

/// An output on which every write fails.
fn full() -> Stdio {
    File::options()
        .write(true)
        .open("/dev/full")
        .unwrap()
        .into()
}

/// How a command ends whose output is full, and what it says on standard error.
fn into_full(mut command: Command) -> (i32, String) {
    let child = command.stdin(Stdio::null()).stdout(full());
    let ran = child.stderr(Stdio::piped()).output().unwrap();
    (
        ran.status.code().unwrap(),
        String::from_utf8(ran.stderr).unwrap(),
    )
}

/// A command under a term, in one of the two forms of output.
fn under(server: &Server, form: &str, sequence: u64, args: &[&str]) -> Command {
    let mut command = highwater();
    let authority = format!("--authority={}/{sequence}@w", server.epoch);
    command.args(["-o", form, "--endpoint", &server.address, &authority]);
    command.args(args);
    command
}

/// The revision that the destination is at.
fn revision(server: &Server) -> String {
    let status = server.run(&["status"]).json();
    status["revision"].as_str().unwrap().into()
}

#[test]
fn an_accepted_write_whose_answer_is_lost_ends_with_6_and_says_that_it_was_accepted() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let file = dir.path().with_extension("json");
    let commit = r#"{"domain":"jobs","mutations":[{"put":{"key":"j/c","value":"v"}}]}"#;
    std::fs::write(&file, commit).unwrap();
    let path = file.to_str().unwrap();
    for (at, form) in (1..).zip(["table", "json"]) {
        let name = format!("more-{form}");
        let writes: [&[&str]; 6] = [
            &["put", "jobs", "j/r", "v"],
            &["delete", "jobs", "j/r"],
            &["commit", "-f", path],
            &["fence", "advance", "jobs", "j"],
            &["fence", "takeover", "jobs", "j"],
            &["domain", "create", &name],
        ];
        for args in writes {
            let before = revision(&server);
            let (code, said) = into_full(under(&server, form, at, args));
            let after = revision(&server);
            assert_eq!(code, 6, "{args:?}: {said}");
            assert_ne!(before, after, "{args:?} was accepted");
            let accepted = format!("accepted at revision {after}");
            assert!(said.contains(&accepted), "{args:?}: {said}");
            assert!(said.contains("don't send it again"), "{args:?}: {said}");
        }
    }
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn what_changed_nothing_ends_as_before_when_its_answer_is_lost() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let put = ["put", "jobs", "j/r", "v"];
    assert_eq!(run_with(under(&server, "json", 5, &put), b"").code, 0);
    let before = revision(&server);
    let code = |sequence, args: &[&str]| into_full(under(&server, "json", sequence, args)).0;
    assert_eq!(code(4, &put), 3, "a refusal keeps its code");
    assert_eq!(code(5, &[&put[..], &["--if-generation=0"]].concat()), 4);
    assert_eq!(
        code(5, &[&put[..], &["--dry-run"]].concat()),
        1,
        "a dry run"
    );
    assert_eq!(code(5, &["get", "jobs", "j/r"]), 1, "a read");
    assert_eq!(revision(&server), before);
}

#[test]
fn a_write_whose_reader_has_left_is_accepted_without_a_word() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let before = revision(&server);
    let mut command = under(&server, "json", 1, &["put", "jobs", "j/r", "v"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_ne!(revision(&server), before);
}

#[test]
fn a_commit_that_no_server_takes_is_not_sent() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let large = "v".repeat(12 << 20);
    let put = |key: &str| format!(r#"{{"put":{{"key":"{key}","value":"{large}"}}}}"#);
    let (one, other) = (put("j/1"), put("j/2"));
    let commit = format!(r#"{{"domain":"jobs","mutations":[{one},{other}]}}"#);
    for args in [
        &["commit", "-f", "-"][..],
        &["commit", "-f", "-", "--dry-run"],
    ] {
        let ran = run_with(under(&server, "json", 1, args), commit.as_bytes());
        let said = ran.json();
        assert_eq!((ran.code, &said["error"]), (2, &"usage".into()), "{said}");
    }
}
