//! How many connections a server takes, where the system gives it few file descriptors.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::support::{SMALL, highwater, run, run_with};

/// A server that may have so many descriptors.
fn limited(descriptors: u32, dir: &TempDir) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -n {descriptors} && exec \"$@\"");
    command.args(["-c", &script, "sh"]);
    command.arg(highwater().get_program());
    command.args(["serve", "--listen=127.0.0.1:0", "--data-dir"]);
    command
        .arg(dir.path().join("data"))
        .args(&SMALL[..SMALL.len() - 1]);
    command.args(["--log=info", "--log-format=json", "--handshake-timeout=60s"]);
    command
}

struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether the server keeps a connection: it answers the first words of a client, or closes it.
fn is_kept(mut connection: &TcpStream) -> bool {
    // So that nothing hangs where it does neither.
    let deadline = Some(Duration::from_secs(60));
    connection.set_read_timeout(deadline).unwrap();
    // The preface, and settings without any.
    let words = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let _ = connection.write_all(words);
    match connection.read(&mut [0]) {
        Ok(read) => read > 0,
        Err(error) => {
            let is_closed = matches!(
                error.kind(),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
            );
            assert!(is_closed, "{error}");
            false
        }
    }
}

#[test]
fn connections_leave_the_store_its_descriptors_and_the_log_says_how_many_there_are() {
    let dir = TempDir::new().unwrap();
    let mut command = limited(100, &dir);
    command.env_remove("HIGHWATER_CONNECTIONS_MAX");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = Ends(child.spawn().unwrap());
    let log = BufReader::new(server.0.stderr.take().unwrap());
    let serving = log.lines().map_while(Result::ok);
    let mut serving = serving.map(|line| serde_json::from_str::<serde_json::Value>(&line).unwrap());
    let serving = serving.find(|line| line["fields"]["message"] == "serving");
    let fields = serving.unwrap()["fields"].clone();
    assert_eq!(fields["connections_max"], 36, "{fields}");
    let address = fields["address"].as_str().unwrap().to_owned();

    let connect = || TcpStream::connect(&address).unwrap();
    let mut held: Vec<_> = (0..36).map(|_| connect()).collect();
    let surplus: Vec<_> = (0..100).map(|_| connect()).collect();
    assert!(!surplus.iter().any(is_kept), "more than there may be");
    assert!(held.iter().all(is_kept));
    // One of them is left for what follows.
    drop(held.pop());
    let client = |args: &[&str], input: &[u8]| {
        let mut command = highwater();
        command.args(["--endpoint", &address]).args(args);
        run_with(command, input)
    };
    // The place of a connection that has gone is free as soon as the server sees it; until then a
    // new one is closed, before or after something was sent on it.
    let until_accepted = |args: &[&str], input: &[u8]| {
        let last = (0..100)
            .map(|_| client(args, input))
            .find(|ran| !matches!(ran.code, 5 | 6));
        let last = last.unwrap();
        assert_eq!(last.code, 0, "{}", last.stderr);
    };
    until_accepted(&["domain", "create", "d", "--admission=open"], b"");
    // Enough for several segments of the log and a checkpoint.
    for _ in 0..16 {
        until_accepted(&["put", "d", "k", "-"], &[b'v'; 500_000]);
    }
}

#[test]
fn a_server_without_descriptors_for_one_connection_does_not_begin() {
    let dir = TempDir::new().unwrap();
    let refused = run_with(limited(64, &dir), b"");
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    for part in ["64", "ulimit -n"] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    assert!(!dir.path().join("data").exists(), "nothing was opened");
    assert_eq!(run(&["serve", "--print-config"]).code, 0);
}
