//! Leases from the command line: their life, their exit codes, and commands that run under one.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Ran, Server, has_small_numbers_alone, run};

const ACQUIRE: [&str; 6] = ["lease", "acquire", "jobs", "j", "--ttl=60min", "--holder=a"];

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The authority and the id of the lease that a receipt tells of.
fn granted(ran: &Ran) -> (String, String) {
    let told = ran.json();
    let lease = &told["receipt"]["leases"][0];
    (text(&lease["authority"]), text(&lease["lease"]))
}

fn code_of(ran: &Ran) -> (i32, Value) {
    (ran.code, ran.json()["code"].clone())
}

#[test]
fn a_lease_is_got_renewed_shown_and_ended() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let observe = || {
        server
            .run(&["lease", "observe", "jobs", "--key=j/1"])
            .json()
    };
    assert_eq!(observe()["standing"], "none");
    let dry = server.run(&[&ACQUIRE[..], &["--dry-run"]].concat());
    assert_eq!((dry.code, &dry.json()["dry_run"]), (0, &true.into()));
    assert_eq!(observe()["current"], Value::Null);
    let got = server.run(&ACQUIRE);
    assert_eq!(got.code, 0, "{}", got.stderr);
    assert!(has_small_numbers_alone(&got.json()));
    let (authority, lease) = granted(&got);
    assert!(
        authority.starts_with(&server.epoch) && authority.ends_with("@a"),
        "{authority}"
    );
    let other = ["lease", "acquire", "jobs", "j", "--ttl=60min", "--holder=b"];
    let held = server.run(&[&other[..], &["--wait=20ms"]].concat());
    assert_eq!(code_of(&held), (4, "LeaseHeld".into()));
    assert_eq!(
        held.json()["observed"]["lease"]["current"]["authority"],
        authority
    );
    assert!(has_small_numbers_alone(&held.json()));

    let under = format!("--authority={authority}");
    assert_eq!(server.run(&[&under, "put", "jobs", "j/1", "v"]).code, 0);
    let renew = ["lease", "renew", "jobs", "j", &lease, "--ttl=30min"];
    assert_eq!(server.run(&renew).code, 2, "without an authority");
    let renewed = server.run(&[&[under.as_str()], &renew[..]].concat());
    assert_eq!(renewed.code, 0, "{}", renewed.stderr);
    let shown = observe();
    assert_eq!(
        (&shown["standing"], &shown["guard"]),
        (&"live".into(), &"j".into())
    );
    assert_eq!(shown["current"]["ttl_ms"], "1800000");
    assert_eq!(shown["current"]["lease"], lease.as_str());
    assert!(has_small_numbers_alone(&shown));
    let listed = server.run(&["lease", "list", "jobs", "--live"]).lines();
    assert_eq!(listed.len(), 1);
    let release = [&under, "lease", "release", "jobs", "j", &lease];
    assert_eq!(server.run(&release).code, 0);
    let again = server.run(&release);
    assert_eq!(code_of(&again), (3, "LeaseGone".into()));
    assert_eq!(again.json()["ended"]["cause"], "released");
    assert!(
        server
            .run(&["lease", "list", "jobs", "--live"])
            .lines()
            .is_empty()
    );
    assert_eq!(server.run(&["lease", "list", "jobs"]).lines().len(), 1);

    assert_ne!(granted(&server.run(&ACQUIRE)).0, authority, "a new term");
    let revoked = server.run(&["lease", "revoke", "jobs", "j", "--by=ops"]);
    assert_eq!(revoked.code, 0, "{}", revoked.stderr);
    let end = &observe()["last_end"];
    assert_eq!(
        (&end["cause"], &end["by"]),
        (&"revoked".into(), &"ops".into())
    );
    let watched = ["watch", "jobs", "--leases", "--count=2", "--after", &lease];
    let watched = server.run(&watched).lines();
    assert_eq!(watched[1]["event"], "leased");
    server.stop();
}

#[test]
fn a_time_to_live_is_within_its_bounds() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    for wrong in ["99ms", "8min8", "10081min"] {
        let wrong = format!("--ttl={wrong}");
        let refused = server.run(&["lease", "acquire", "jobs", "j", "--holder=a", &wrong]);
        assert_eq!(refused.code, 2, "{wrong}");
    }
    let shortest = ["lease", "acquire", "jobs", "j", "--holder=a", "--ttl=100ms"];
    assert_eq!(server.run(&shortest).code, 0);
    server.stop();
}

#[test]
fn a_domain_of_issued_terms_takes_no_others() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(&dir);
    let create = [
        "domain",
        "create",
        "d",
        "--terms=issued",
        "--strict",
        "--grace=5s",
    ];
    let made = server.run(&create).json();
    let policy = &made["policy"];
    assert_eq!(policy["terms"], "issued");
    assert_eq!(
        (&policy["strict"], &policy["grace_ms"]),
        (&true.into(), &"5000".into())
    );
    let epoch = text(&made["epoch"]);
    let invented = format!("--authority={epoch}/1@a");
    let refused = server.run(&[&invented, "put", "d", "k", "v"]);
    assert_eq!(code_of(&refused), (3, "UnknownTerm".into()));
    let got = server.run(&["lease", "acquire", "d", "k", "--ttl=60min", "--holder=a"]);
    let (authority, lease) = granted(&got);
    let under = format!("--authority={authority}");
    assert_eq!(server.run(&[&under, "put", "d", "k", "v"]).code, 0);
    let revoked = ["lease", "revoke", "d", "k", "--by=ops", "--lease", &lease];
    assert_eq!(server.run(&revoked).code, 0);
    let late = server.run(&[&under, "put", "d", "k", "v"]);
    assert_eq!(code_of(&late), (3, "NotLeased".into()));
    assert_eq!(
        server
            .run(&["domain", "create", "e", "--grace=10081min"])
            .code,
        2
    );
    server.stop();
}

#[test]
fn a_command_runs_under_a_lease_and_its_code_is_the_code() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let say = "echo $HIGHWATER_AUTHORITY $HIGHWATER_LEASE $HIGHWATER_DESTINATION; exit 9";
    let under = [
        "lease",
        "run",
        "jobs",
        "j",
        "--ttl=60min",
        "--holder=w",
        "--",
    ];
    let ran = server.run(&[&under[..], &["sh", "-c", say]].concat());
    assert_eq!(ran.code, 9, "{}", ran.stderr);
    let said = String::from_utf8(ran.stdout).unwrap();
    let words: Vec<&str> = said.split_whitespace().collect();
    let observe = || server.run(&["lease", "observe", "jobs", "j"]).json();
    let end = observe()["last_end"].clone();
    assert_eq!(words[0], end["authority"].as_str().unwrap());
    assert_eq!(words[1], end["lease"].as_str().unwrap());
    assert_eq!(words[2], server.destination);
    assert_eq!(end["cause"], "released");
    assert_eq!(server.run(&[&under[..], &["true"]].concat()).code, 0);
    let killed = server.run(&[&under[..], &["sh", "-c", "kill -KILL $$"]].concat());
    assert_eq!(killed.code, 128 + 9);
    let absent = server.run(&[&under[..], &["/no/such/command"]].concat());
    assert_eq!(absent.code, 1);
    assert_eq!(observe()["standing"], "none", "released, too");
    assert_eq!(server.run(&ACQUIRE).code, 0);
    let held = server.run(&[&under[..], &["true"]].concat());
    assert_eq!(code_of(&held), (4, "LeaseHeld".into()));
    server.stop();
}

#[test]
fn a_command_is_ended_when_the_lease_is_lost_however_deaf_it_is() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    for deaf in ["trap '' TERM;", ""] {
        let script = format!("{deaf} echo running; exec sleep 3600");
        let mut command = server.command(&[
            "lease",
            "run",
            "jobs",
            "j",
            "--ttl=1s",
            "--holder=w",
            "--kill-after=100ms",
            "--",
            "sh",
            "-c",
            &script,
        ]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "running\n");
        let revoked = server.run(&["lease", "revoke", "jobs", "j", "--by=ops"]);
        assert_eq!(revoked.code, 0, "{}", revoked.stderr);
        // The command holds the other end: that this ends says that it is gone.
        line.clear();
        out.read_line(&mut line).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(7));
        let told: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(told["error"], "lease_lost");
        assert_eq!(told["rejection"]["code"], "LeaseGone");
        assert_eq!(told["rejection"]["ended"]["by"], "ops");
    }
    server.stop();
}

#[test]
fn a_take_over_acquires_and_tells_what_became_of_intents() {
    let dir = TempDir::new().unwrap();
    let server = Server::with_jobs(&dir);
    let (authority, _) = granted(&server.run(&ACQUIRE));
    let under = format!("--authority={authority}");
    let step = [&under, "put", "jobs", "j/1", "v", "--intent=done"];
    assert_eq!(server.run(&step).code, 0);
    let ask = ["intent", "reconcile", "jobs", "done", "never"];
    let look = server.run(&ask).lines();
    let effects = |lines: &[Value]| lines.iter().map(|line| text(&line["effects"])).collect();
    let told: Vec<String> = effects(&look);
    assert_eq!(told, ["present", "indeterminate"]);
    assert_eq!(
        server.run(&[&ask[..], &["--guard=j"]].concat()).code,
        2,
        "no authority"
    );
    let revoked = server.run(&["lease", "revoke", "jobs", "j", "--by=ops"]);
    assert_eq!(revoked.code, 0);

    let take = [
        "fence",
        "takeover",
        "jobs",
        "j",
        "--acquire=b",
        "--ttl=60min",
    ];
    let taken = server.run(&[&take[..], &["--intent=done", "--intent=never"]].concat());
    assert_eq!(taken.code, 0, "{}", taken.stderr);
    let lines = taken.lines();
    assert_eq!(lines.len(), 5, "{lines:?}");
    let lease = &lines[1]["receipt"]["leases"][0];
    assert_eq!(lines[0]["receipt"]["guards"][0]["fence"]["holder"], "b");
    let told: Vec<String> = effects(&lines[2..4]);
    assert_eq!(told, ["present", "absent"]);
    assert_eq!(lines[4]["key"], "j/1");
    let new = format!("--authority={}", text(&lease["authority"]));
    let fenced = server
        .run(&[&[new.as_str()], &ask[..], &["--guard=j"]].concat())
        .lines();
    assert_eq!(fenced[0]["verdict"], "accepted");
    let told: Vec<String> = effects(&fenced[1..]);
    assert_eq!(told, ["present", "absent"]);
    let late = server.run(&[&[under.as_str()], &ask[..], &["--guard=j"]].concat());
    assert_eq!(code_of(&late), (3, "StaleTerm".into()));
    assert_eq!(
        server
            .run(&["fence", "takeover", "jobs", "j", "--acquire=b"])
            .code,
        2
    );
    server.stop();
}

#[test]
fn the_help_tells_the_code_of_a_lost_lease() {
    let help = run(&["--help"]);
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("7  `lease run`"), "{help}");
}
