//! Intents from the command line: their life, their exit codes, and what is told of them.

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{ODD, Ran, Server, has_small_numbers_alone, run, run_with};

const DIGEST: &str = "abababababababababababababababababababababababababababababababab";

fn code_of(ran: &Ran) -> (i32, Value) {
    (ran.code, ran.json()["code"].clone())
}

#[test]
fn an_intent_is_bound_done_step_by_step_and_ended() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let bind = [
        "intent",
        "bind",
        "jobs",
        "close%2f7",
        "--guard=j",
        "--input-key=j/in=0",
        &format!("--input=plan={DIGEST}"),
        "--configuration=v7",
    ];
    assert_eq!(server.run(&bind).code, 2, "a binding needs an authority");
    let dry = server.under(5, "a", &[&bind[..], &["--dry-run"]].concat());
    assert_eq!((dry.code, &dry.json()["dry_run"]), (0, &true.into()));
    assert_eq!(server.run(&["intent", "show", "jobs", "close%2f7"]).code, 1);
    assert_eq!(server.under(5, "a", &bind).code, 0);

    let put = ["put", "jobs", "j/r", "v", "--intent=close/7"];
    let first = server.under(5, "a", &put);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let first = first.json();
    assert_eq!(first["receipt"]["replayed"], false);
    assert_eq!(first["receipt"]["intent"]["id"], "close/7");
    assert_eq!(first["receipt"]["intent"]["step"], 1);
    // Again, by one who has lost the guard: the first receipt.
    assert_eq!(
        server
            .under(6, "b", &["fence", "advance", "jobs", "j"])
            .code,
        0
    );
    let again = server.under(5, "a", &put).json();
    assert_eq!(again["receipt"]["replayed"], true);
    assert_eq!(again["receipt"]["revision"], first["receipt"]["revision"]);
    let last = [
        "delete",
        "jobs",
        "j/r",
        "--intent=close/7",
        "--step=2",
        "--complete",
    ];
    assert_eq!(
        server.under(5, "a", &last).code,
        3,
        "a new step is a new effect"
    );
    assert_eq!(server.under(6, "b", &last).code, 0);

    let shown = server.run(&["intent", "show", "jobs", "close/7"]).json();
    assert_eq!(shown["state"], "completed");
    let binding = &shown["binding"];
    assert_eq!(binding["guard"], "j");
    assert_eq!(binding["authority"], format!("{}/5@a", server.epoch));
    assert_eq!(binding["configuration"], "v7");
    assert_eq!(binding["inputs"][0]["key"], "j/in");
    assert_eq!(binding["inputs"][0]["generation"], "0");
    assert_eq!(binding["inputs"][1]["digest"], DIGEST);
    assert_eq!(shown["steps"][1]["step"], 2);
    assert_eq!(
        shown["steps"][0]["receipt"]["revision"],
        first["receipt"]["revision"]
    );
    assert!(has_small_numbers_alone(&shown));
}

#[test]
fn what_an_intent_refuses_ends_with_4_and_shows_the_intent() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let put = |value| ["put", "jobs", "j/r", value, "--intent=i", "--complete"];
    assert_eq!(server.under(5, "a", &put("v")).code, 0);
    let other = server.under(5, "a", &put("w"));
    assert_eq!(code_of(&other), (4, "IntentConflict".into()));
    let told = other.json();
    assert_eq!(told["conflict"], "content");
    assert_eq!(told["observed"]["intent"]["state"], "completed");
    assert_eq!(told["observed"]["intent"]["steps"][0]["step"], 1);
    let closed = server.under(
        5,
        "a",
        &["put", "jobs", "j/r", "v", "--intent=i", "--step=2"],
    );
    assert_eq!(code_of(&closed), (4, "IntentClosed".into()));
    assert_eq!(closed.json()["state"], "completed");
    assert_eq!(closed.json()["mutation_index"], Value::Null);
    let skipped = server.under(5, "a", &["delete", "jobs", "j/r", "--intent=j", "--step=3"]);
    assert_eq!(code_of(&skipped), (4, "IntentConflict".into()));
    assert_eq!(
        (
            &skipped.json()["conflict"],
            &skipped.json()["expected_step"]
        ),
        (&"step".into(), &1.into())
    );
    let unknown = server.under(
        5,
        "a",
        &["intent", "close", "jobs", "k", "--guard=j", "--as=rejected"],
    );
    assert_eq!(code_of(&unknown), (4, "UnknownIntent".into()));
    assert_eq!(unknown.json()["observed"]["intent"]["state"], Value::Null);
    for ran in [&other, &closed, &skipped, &unknown] {
        assert!(has_small_numbers_alone(&ran.json()), "{}", ran.json());
    }
    // Wrong in itself.
    for wrong in [
        &["put", "jobs", "j/r", "v", "--step=1"][..],
        &["put", "jobs", "j/r", "v", "--complete"],
        &["put", "jobs", "j/r", "v", "--intent=i", "--step=0"],
        &["put", "jobs", "j/r", "v", "--intent=i", "--step=65"],
        &["put", "jobs", "j/r", "v", "--intent="],
        &["intent", "list", "jobs", "--state=open", "--due-before=1"],
    ] {
        assert_eq!(server.under(5, "a", wrong).code, 2, "{wrong:?}");
    }
}

#[test]
fn an_indeterminate_intent_is_found_when_it_is_due_and_resolved() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    for name in ["i", "j", "k"] {
        assert_eq!(
            server
                .under(5, "a", &["intent", "bind", "jobs", name, "--guard=g"])
                .code,
            0
        );
    }
    let at = format!("--review-at={ODD}");
    let suspend = |name| {
        let args = [
            "intent",
            "suspend",
            "jobs",
            name,
            "--guard=g",
            "--owner=on%20call",
            &at,
        ];
        server.under(5, "a", &args).code
    };
    let resolve = |name| {
        let args = [
            "intent",
            "resolve",
            "jobs",
            name,
            "--guard=g",
            "--as=cancelled",
        ];
        server.under(5, "a", &args)
    };
    let open = resolve("i");
    assert_eq!(open.code, 4);
    assert!(
        open.json()["message"]
            .as_str()
            .unwrap()
            .contains("nothing to resolve")
    );
    assert_eq!((suspend("i"), suspend("k")), (0, 0));
    let names = |args: &[&str]| {
        let lines = server
            .run(&[&["intent", "list", "jobs"], args].concat())
            .lines();
        let name = |line: &Value| line["intent"].as_str().unwrap().to_owned();
        lines.iter().map(name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&[]), "i j k");
    assert_eq!(names(&["--limit=2"]), "i j");
    assert_eq!(names(&["--state=open"]), "j");
    assert_eq!(names(&["--state=indeterminate"]), "i k");
    assert_eq!(names(&["--due-before", &ODD.to_string()]), "");
    assert_eq!(names(&["--due-before", &(ODD + 1).to_string()]), "i k");
    let shown = server.run(&["intent", "show", "jobs", "i"]).json();
    assert_eq!(
        (&shown["owner"], &shown["review_at_ms"]),
        (&"on%20call".into(), &ODD.to_string().into())
    );
    let resolved = resolve("i");
    assert_eq!(resolved.code, 0, "{}", resolved.stderr);
    assert_eq!(code_of(&resolve("i")), (4, "IntentClosed".into()));
    assert_eq!(names(&["--state=ended"]), "i");
    assert_eq!(names(&["--state=indeterminate"]), "k");
}

#[test]
fn a_commit_in_json_binds_steps_and_ends_intents() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let text = format!(
        r#"{{"domain": "jobs", "authority": "{}/1@w",
            "intent": {{"id": "a", "step": 1, "completes": true}},
            "mutations": [
              {{"put": {{"key": "j/a", "value": "1"}}}},
              {{"bind_intent": {{"intent": "b", "guard": "j", "configuration": "v1", "inputs": [
                 {{"key": "j/a", "generation": "0"}},
                 {{"name": "plan", "digest": "{DIGEST}"}}]}}}}]}}"#,
        server.epoch
    );
    let commit = |args: &[&str]| run_with(server.command(args), text.as_bytes());
    let done = commit(&["commit", "-f", "-"]);
    assert_eq!(done.code, 0, "{}", done.json());
    let again = commit(&["commit", "-f", "-"]).json();
    assert_eq!(again["receipt"]["replayed"], true);
    assert_eq!(commit(&["commit", "-f", "-", "--intent=c"]).code, 2);
    let shown = server.run(&["intent", "show", "jobs", "b"]).json();
    assert_eq!(shown["binding"]["inputs"].as_array().unwrap().len(), 2);
    let states: Vec<Value> = server.run(&["intent", "list", "jobs"]).lines();
    assert_eq!(
        (&states[0]["state"], &states[1]["state"]),
        (&"completed".into(), &"open".into())
    );
    assert_eq!(states[1]["binding"]["inputs"], 2);
}

#[test]
fn people_read_intents_in_lines_and_tables() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    assert_eq!(
        server
            .under(5, "a", &["intent", "bind", "jobs", "i", "--guard=j"])
            .code,
        0
    );
    let authority = format!("--authority={}/5@a", server.epoch);
    let read = |args: &[&str]| {
        let ran = run(&[&["--endpoint", &server.address, &authority], args].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        String::from_utf8(ran.stdout).unwrap()
    };
    let put = ["put", "jobs", "j/r", "v", "--intent=i"];
    let (first, again) = (read(&put), read(&put));
    assert!(
        first.contains("intent i: step 1") && !first.contains("again"),
        "{first}"
    );
    assert!(again.contains("told again"), "{again}");
    let shown = read(&["intent", "show", "jobs", "i"]);
    for part in [
        "open",
        &format!("{}/5@a", server.epoch),
        "1 accepted at revision",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    let listed = read(&["intent", "list", "jobs"]);
    assert!(
        listed.contains("INTENT") && listed.contains("open"),
        "{listed}"
    );
    let script = read(&["completions", "bash"]);
    assert!(
        script.contains("resolve") && script.contains("--due-before"),
        "no completion"
    );
}
