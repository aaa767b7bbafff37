//! The binary, and servers on free ports that end with the test.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// 2^53 + 1: the first whole number that a floating-point number can't hold.
pub(crate) const ODD: u64 = (1 << 53) + 1;
pub(crate) const SMALL: [&str; 8] = [
    "--segment-bytes=1MiB",
    "--log-bytes=4MiB",
    "--memory-bytes=4MiB",
    "--hot-bytes=1MiB",
    "--index-cache-bytes=4MiB",
    "--history-bytes=1MiB",
    "--shutdown-grace=2s",
    "--log=warn",
];

/// The program without settings from the environment.
pub(crate) fn highwater() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HIGHWATER_") {
            command.env_remove(name);
        }
    }
    command
}

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = std::str::from_utf8(&self.stdout).unwrap();
        let parse = |line| serde_json::from_str(line).unwrap();
        text.lines().map(parse).collect()
    }

    pub(crate) fn json(&self) -> Value {
        let mut lines = self.lines();
        assert_eq!(lines.len(), 1, "{}", self.stderr);
        lines.remove(0)
    }
}

pub(crate) fn run_with(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that doesn't read its input may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: output.stdout,
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn run(args: &[&str]) -> Ran {
    let mut command = highwater();
    command.args(args);
    run_with(command, b"")
}

/// A server on a free port, with a domain `jobs` of one guard for each job.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: String,
    pub(crate) destination: String,
    pub(crate) epoch: String,
}

impl Server {
    pub(crate) fn start(dir: &TempDir) -> Self {
        Self::start_with(dir, &[])
    }

    /// With more settings.
    pub(crate) fn start_with(dir: &TempDir, settings: &[&str]) -> Self {
        let mut child = highwater()
            .args(["-o", "json", "serve", "--listen=127.0.0.1:0", "--data-dir"])
            .arg(dir.path())
            .args(SMALL)
            .args(settings)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.as_mut().unwrap());
        out.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let text = |name: &str| said[name].as_str().unwrap().to_owned();
        Self {
            child,
            address: text("listening"),
            destination: text("destination"),
            epoch: String::new(),
        }
    }

    pub(crate) fn with_jobs(dir: &TempDir) -> Self {
        let mut server = Self::start(dir);
        let made = server.run(&["domain", "create", "jobs", "--guard=prefix"]);
        assert_eq!(made.code, 0, "{}", made.stderr);
        server.epoch = made.json()["epoch"].as_str().unwrap().to_owned();
        server
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = highwater();
        command.args(["-o", "json", "--endpoint", &self.address]);
        command.args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        run_with(self.command(args), b"")
    }

    /// Runs a command under a term of the current epoch.
    pub(crate) fn under(&self, sequence: u64, holder: &str, args: &[&str]) -> Ran {
        let authority = format!("--authority={}/{sequence}@{holder}", self.epoch);
        run_with(self.command(&[&[authority.as_str()], args].concat()), b"")
    }

    pub(crate) fn signal(&self, name: &str) {
        // The shell's own kill: not every system has one as a program.
        let line = format!("kill {name} {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &line]).status().unwrap();
        assert!(sent.success());
    }

    pub(crate) fn stop(mut self) -> i32 {
        self.signal("-TERM");
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether every number in a JSON value is small enough to be exact in any reader.
pub(crate) fn has_small_numbers_alone(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_u64().is_some_and(|n| n <= u64::from(u32::MAX)),
        Value::Array(items) => items.iter().all(has_small_numbers_alone),
        Value::Object(map) => map.values().all(has_small_numbers_alone),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}
