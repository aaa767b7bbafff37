//! Servers, their settings, and the demonstration.

use tempfile::TempDir;

use crate::support::{SMALL, Server, highwater, run, run_with};

#[test]
fn a_fence_outlives_the_server_and_one_directory_has_one_server() {
    let dir = TempDir::new().unwrap();
    let mut server = Server::with_jobs(&dir);
    assert_eq!(server.under(42, "b", &["put", "jobs", "j/r", "v"]).code, 0);
    let second = run_with(
        {
            let mut command = highwater();
            command.args(["serve", "--listen=127.0.0.1:0", "--data-dir"]);
            command.arg(dir.path()).args(SMALL);
            command
        },
        b"",
    );
    assert_eq!(second.code, 1, "{}", second.stderr);
    let (epoch, destination) = (server.epoch.clone(), server.destination.clone());
    // Killed, not stopped.
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let mut again = Server::start(&dir);
    assert_eq!(again.destination, destination);
    again.epoch = epoch;
    assert_eq!(
        again.under(41, "a", &["put", "jobs", "j/r", "late"]).code,
        3
    );
    assert_eq!(again.run(&["get", "jobs", "j/r"]).json()["value"], "v");
    again.signal("-INT");
    assert_eq!(again.child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_option_comes_before_the_environment_and_that_before_the_file() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("highwater.toml");
    std::fs::write(&file, "scans_max = 1\nwatches_max = 1\nstream_window = 1\n").unwrap();
    let print = |extra: &[&str]| {
        let mut command = highwater();
        command.env("HIGHWATER_CONFIG", &file);
        command
            .env("HIGHWATER_WATCHES_MAX", "2")
            .env("HIGHWATER_STREAM_WINDOW", "2");
        command
            .args(["serve", "--print-config", "--stream-window=3"])
            .args(extra);
        run_with(command, b"")
    };
    let printed = String::from_utf8(print(&[]).stdout).unwrap();
    for line in [
        "scans_max = 1",
        "watches_max = 2",
        "stream_window = 3",
        "commit_streams_max = 1024",
    ] {
        assert!(
            printed.lines().any(|printed| printed == line),
            "{line}\n{printed}"
        );
    }
    assert_eq!(print(&["--scans-max=0"]).code, 2, "out of its bounds");
    std::fs::write(&file, "fsync = false\n").unwrap();
    let refused = print(&[]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("fsync"), "{}", refused.stderr);
}

#[test]
fn the_demonstration_ends_well_and_shows_the_refusal() {
    let shown = run(&["demo"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("REFUSED: StaleTerm"), "{text}");
    let lines = run(&["-o", "json", "demo"]).lines();
    let late = lines.iter().find(|line| line["at_seconds"] == 55).unwrap();
    assert_eq!(late["verdict"], "StaleTerm");
    assert_eq!(late["fence"]["sequence"], "42");
    assert_eq!(late["generation_kept"], true);
    assert_eq!(lines.last().unwrap()["summary"]["wrong"], 0);
}
