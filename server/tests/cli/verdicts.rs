//! Verdicts: exit codes, evidence, commits as JSON, take-overs.

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{ODD, Ran, Server, has_small_numbers_alone, run, run_with};

#[test]
fn every_exit_code_means_what_it_says() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let put = ["put", "jobs", "j/r", "v"];
    assert_eq!(server.under(42, "b", &put).code, 0);

    // 1: anything else.
    let unknown = server.under(42, "b", &["put", "nowhere", "j/r", "v"]);
    assert_eq!(unknown.code, 1);
    assert_eq!(unknown.json()["code"], "UnknownDomain");
    assert_eq!(server.run(&["domain", "create", "jobs"]).code, 1);
    assert_eq!(server.run(&["get", "jobs", "absent"]).code, 1);

    // 2: wrong in itself, here and at the server.
    assert_eq!(server.run(&["put", "jobs"]).code, 2);
    assert_eq!(
        server
            .run(&["--authority=1/42@b", "put", "jobs", "k", "v"])
            .code,
        2
    );
    assert_eq!(server.run(&["get", "jobs", "100%"]).code, 2);
    let large = run_with(
        {
            let authority = format!("--authority={}/42@b", server.epoch);
            server.command(&[&authority, "put", "jobs", "j/r", "-"])
        },
        &vec![0; (1 << 20) + 1],
    );
    assert_eq!(
        (large.code, &large.json()["code"]),
        (2, &"Malformed".into())
    );
    let bare = server.run(&put);
    assert_eq!(
        (bare.code, &bare.json()["code"]),
        (2, &"AuthorityRequired".into())
    );

    // 3: lost authority.
    let stale = server.under(41, "a", &put);
    assert_eq!(stale.code, 3);
    let stale = stale.json();
    assert_eq!(stale["verdict"], "rejected");
    assert_eq!(stale["code"], "StaleTerm");
    assert_eq!(stale["observed"]["fence"]["sequence"], "42");
    assert_eq!(stale["observed"]["fence"]["holder"], "b");
    assert_eq!(server.under(42, "c", &put).json()["code"], "HolderConflict");
    let stranger = [
        "--destination",
        &"00".repeat(16),
        "--incarnation=1.0000000000000000",
    ];
    let elsewhere = server.under(42, "b", &[&stranger[..], &put[..]].concat());
    assert_eq!(
        (elsewhere.code, &elsewhere.json()["code"]),
        (3, &"WrongDestination".into())
    );
    assert_eq!(
        server
            .under(41, "a", &["get", "jobs", "j/r", "--guarded"])
            .code,
        3
    );
    assert_eq!(
        server
            .under(42, "b", &["get", "jobs", "j/r", "--guarded"])
            .code,
        0
    );

    // 4: a failed condition.
    let failed = server.under(42, "b", &[&put[..], &["--if-generation=0"]].concat());
    assert_eq!(
        (failed.code, &failed.json()["code"]),
        (4, &"ConditionFailed".into())
    );
}

#[test]
fn what_is_wrong_is_told_with_what_would_be_right() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let told = |ran: Ran, right: &str| {
        assert_eq!(ran.code, 2);
        let said = String::from_utf8(ran.stdout).unwrap() + &ran.stderr;
        assert!(said.contains(right), "{said}");
    };
    let unnamed = ["scan", "jobs", "--prefix=j/", "--guarded"];
    told(server.under(42, "b", &unnamed), "--read-guard");
    let early = server.run(&["watch", "jobs", "--after=0"]);
    told(early, "281474976710656");
}

#[test]
fn silence_after_a_write_is_unknown_and_an_absent_server_is_unavailable() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let put = ["put", "jobs", "j/r", "v"];
    // 6: the server is there and doesn't answer; what it will do with the write isn't known.
    server.signal("-STOP");
    let silent = server.under(42, "b", &[&["--timeout=500ms"], &put[..]].concat());
    assert_eq!(
        (silent.code, &silent.json()["verdict"]),
        (6, &"unknown".into())
    );
    let silent = server.run(&["--timeout=500ms", "get", "jobs", "j/r"]);
    assert_eq!(silent.code, 5, "a read that isn't answered can be repeated");
    server.signal("-CONT");

    // 5: nobody is there.
    let address = server.address.clone();
    assert_eq!(server.stop(), 0, "an orderly end");
    let gone = run(&["--endpoint", &address, "get", "jobs", "j/r"]);
    assert_eq!(gone.code, 5);
    assert!(gone.stdout.is_empty());
    assert!(gone.stderr.contains("nothing was sent"), "{}", gone.stderr);
}

#[test]
fn people_read_a_sentence_with_the_evidence_on_standard_error() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    assert_eq!(server.under(42, "b", &["put", "jobs", "j/r", "v"]).code, 0);
    let authority = format!("--authority={}/41@a", server.epoch);
    let stale = run(&[
        "--endpoint",
        &server.address,
        &authority,
        "put",
        "jobs",
        "j/r",
        "v",
    ]);
    assert_eq!((stale.code, stale.stdout.len()), (3, 0));
    let epoch = &server.epoch;
    for part in [
        "StaleTerm",
        &format!("{epoch}/41@a"),
        &format!("{epoch}/42@b"),
    ] {
        assert!(stale.stderr.contains(part), "{}", stale.stderr);
    }
}

#[test]
fn a_commit_in_json_is_judged_as_a_whole_and_a_dry_run_changes_nothing() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let text = format!(
        r#"{{"domain": "jobs", "authority": "{}/{ODD}@w",
            "conditions": [{{"generation_is": {{"key": "j/a", "generation": "0"}}}}],
            "mutations": [{{"put": {{"key": "j/a", "value": "1", "labels": {{"x": "y"}}}}}},
                          {{"put": {{"key": "j/b", "value_base64": "AP8="}}}},
                          {{"advance": {{"guard": "k"}}}}]}}"#,
        server.epoch
    );
    let commit = |args: &[&str]| run_with(server.command(args), text.as_bytes());
    let judged = commit(&["commit", "-f", "-", "--dry-run"]);
    assert_eq!((judged.code, &judged.json()["dry_run"]), (0, &true.into()));
    assert_eq!(server.run(&["get", "jobs", "j/a"]).code, 1);
    assert_eq!(
        server.run(&["fence", "show", "jobs", "j"]).json()["fence"],
        Value::Null
    );
    let done = commit(&["commit", "-f", "-"]).json();
    assert_eq!(done["receipt"]["writes"].as_array().unwrap().len(), 2);
    assert_eq!(done["receipt"]["guards"].as_array().unwrap().len(), 2);
    assert_eq!(
        server.run(&["get", "jobs", "j/a"]).json()["labels"]["x"],
        "y"
    );
    assert_eq!(commit(&["commit", "-f", "-"]).code, 4);
    // An authority beside the commit's own would be a guess which one is meant.
    let authority = format!("--authority={}/{ODD}@w", server.epoch);
    assert_eq!(commit(&[&authority, "commit", "-f", "-"]).code, 2);
    let odd = run_with(
        server.command(&["commit", "-f", "-"]),
        br#"{"domain":"jobs","x":1}"#,
    );
    assert_eq!((odd.code, &odd.json()["error"]), (2, &"usage".into()));
}

#[test]
fn a_taker_over_sees_what_is_under_the_guard_and_a_watcher_sees_all_of_it() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let first = server.under(1, "a", &["put", "jobs", "j/r", "one"]).json();
    let revision = first["receipt"]["revision"].as_str().unwrap();
    let taken = server.under(2, "b", &["fence", "takeover", "jobs", "j"]);
    let lines = taken.lines();
    assert_eq!(lines[0]["receipt"]["guards"][0]["previous"]["holder"], "a");
    assert_eq!(
        (&lines[1]["key"], &lines[1]["value"]),
        (&"j/r".into(), &"one".into())
    );
    assert_eq!(
        server.under(1, "a", &["put", "jobs", "j/r", "late"]).code,
        3
    );
    assert_eq!(server.under(2, "b", &["delete", "jobs", "j/r"]).code, 0);
    assert_eq!(
        server
            .under(3, "c", &["fence", "advance", "jobs", "j"])
            .code,
        0
    );
    let watch = [
        "watch",
        "jobs",
        "--fences",
        "--count=3",
        "--after",
        revision,
    ];
    let events = server.run(&watch).lines();
    let told: Vec<_> = events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(
        told.iter().filter(|kind| **kind == "deleted").count(),
        1,
        "{told:?}"
    );
    assert!(
        events.iter().any(|event| event["fence"]["holder"] == "c"),
        "{events:?}"
    );
    assert!(!events.iter().any(|event| event["value"] == "late"));
    assert!(events.iter().all(has_small_numbers_alone));
}
