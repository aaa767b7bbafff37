//! The program as a process: started, found, signalled, and waited for.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use highwater_client::{Client, ClientOptions, Session};
use highwater_core::{
    Authority, Domain, DomainName, Epoch, GuardRule, Holder, Key, Policy, Sequence, Term, Value,
};
use highwater_proto::v1::highwater_client::HighwaterClient;
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};

/// Far more than anything here takes; a test that needs it has failed.
pub(crate) const TOO_LONG: Duration = Duration::from_secs(60);

/// Bounds so small that segments fill and checkpoints run all the time.
pub(crate) const SMALL: [&str; 7] = [
    "--segment-bytes=64KiB",
    "--log-bytes=256KiB",
    "--memory-bytes=512KiB",
    "--hot-bytes=64KiB",
    "--index-cache-bytes=4MiB",
    "--history-bytes=64KiB",
    "--group-bytes=16KiB",
];

/// A directory of a test: the store's own, and what the server said beside it.
pub(crate) struct Place {
    root: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = TempDir::new().unwrap();
        Self { root }
    }

    /// Where the store is.
    pub(crate) fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// A file beside the store.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// What servers wrote to standard error so far.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.beside("stderr")).unwrap_or_default()
    }

    /// Starts a server on the store; one that doesn't come up fails the test.
    pub(crate) fn start(&self, options: &[&str]) -> Server {
        self.launch(program(), options)
            .unwrap_or_else(|status| panic!("no server, {status}: {}", self.said()))
    }

    /// Starts a server through a command that runs the program with the arguments that follow;
    /// tells how it ended if it ended before it served.
    pub(crate) fn launch(&self, command: Command, options: &[&str]) -> Result<Server, ExitStatus> {
        self.launch_at(&self.data(), command, options)
    }

    /// The same, for a store that is somewhere else.
    pub(crate) fn launch_at(
        &self,
        data: &Path,
        command: Command,
        options: &[&str],
    ) -> Result<Server, ExitStatus> {
        Server::of(self.spawn(data, command, options))
    }

    /// Starts a server that is killed when its time is over, whether it serves by then or not.
    pub(crate) fn launch_for(
        &self,
        life: Duration,
        options: &[&str],
    ) -> Result<Server, ExitStatus> {
        let child = self.spawn(&self.data(), program(), options);
        let pid = child.id();
        std::thread::spawn(move || {
            let (_never, end) = sync_channel::<()>(1);
            let _ = end.recv_timeout(life);
            send("KILL", pid);
        });
        Server::of(child)
    }

    fn spawn(&self, data: &Path, mut command: Command, options: &[&str]) -> Child {
        let append = File::options()
            .append(true)
            .create(true)
            .open(self.beside("stderr"));
        command
            .arg("serve")
            .arg(format!("--data-dir={}", data.display()))
            .args(["--listen=127.0.0.1:0", "--log=warn"])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(append.unwrap());
        command.spawn().unwrap()
    }
}

/// The program, without settings from the environment.
pub(crate) fn program() -> Command {
    plain(Command::new(env!("CARGO_BIN_EXE_highwater")))
}

fn plain(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HIGHWATER_") {
            command.env_remove(name);
        }
    }
    command
}

/// The program under strace with these options; `None` where there is no strace, which is a failure
/// if the environment says that every tool must be there.
pub(crate) fn traced(options: &[&str]) -> Option<Command> {
    if Command::new("strace").arg("-V").output().is_err() {
        assert!(
            std::env::var_os("HIGHWATER_REQUIRE_TOOLS").is_none(),
            "strace is missing"
        );
        println!("SKIPPED: strace is missing");
        return None;
    }
    let mut command = plain(Command::new("strace"));
    command
        .arg("-f")
        .args(options)
        .arg(env!("CARGO_BIN_EXE_highwater"));
    Some(command)
}

/// A server that serves. It is killed when it is dropped.
pub(crate) struct Server {
    child: Option<Child>,
    pid: u32,
    pub(crate) address: SocketAddr,
}

impl Server {
    fn of(mut child: Child) -> Result<Self, ExitStatus> {
        let stdout = child.stdout.take().unwrap();
        let (told, heard) = sync_channel(1);
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(stdout).read_line(&mut line);
            told.send(read.map(|_| line))
        });
        let line = match heard.recv_timeout(TOO_LONG) {
            Ok(line) => line.unwrap(),
            Err(error) => {
                let _ = child.kill();
                panic!("the server says nothing: {error}")
            }
        };
        if line.is_empty() {
            return Err(child.wait().unwrap());
        }
        let address = line
            .strip_prefix("highwater listens on ")
            .and_then(|rest| rest.split_once(": "))
            .and_then(|(address, _)| address.parse().ok())
            .unwrap_or_else(|| panic!("unexpected: {line}"));
        let pid = inner(child.id()).unwrap_or(child.id());
        Ok(Self {
            child: Some(child),
            pid,
            address,
        })
    }

    /// The server's own process, also where it is traced.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a signal to the server itself.
    pub(crate) fn signal(&self, name: &str) {
        send(name, self.pid);
    }

    /// Waits for the end.
    pub(crate) async fn ended(mut self) -> ExitStatus {
        let mut child = self.child.take().unwrap();
        let pid = self.pid;
        let waiting = tokio::task::spawn_blocking(move || child.wait().unwrap());
        match tokio::time::timeout(TOO_LONG, waiting).await {
            Ok(status) => status.unwrap(),
            Err(_) => {
                send("KILL", pid);
                panic!("the server doesn't end")
            }
        }
    }

    /// Ends the server at once, whatever it is doing.
    pub(crate) async fn kill(self) {
        self.signal("KILL");
        self.ended().await;
    }

    /// A connection of its own.
    pub(crate) async fn client(&self) -> Client {
        let address = format!("http://{}", self.address);
        Client::connect(&address, ClientOptions::default())
            .await
            .unwrap()
    }

    /// A connection without anything of ours above the generated code.
    pub(crate) async fn raw(&self) -> HighwaterClient<Channel> {
        HighwaterClient::new(self.channel().await)
    }

    /// A connection for any service.
    pub(crate) async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).unwrap();
        endpoint.connect().await.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            send("KILL", self.pid);
            let _ = child.wait();
        }
    }
}

/// The process that a tracer runs; `None` for a process without children.
fn inner(pid: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

/// Sends a signal; a process that is gone already needs none.
fn send(signal: &str, pid: u32) {
    let kill = format!("kill -{signal} {pid} 2>/dev/null");
    Command::new("sh").args(["-c", &kill]).status().unwrap();
}

/// Random numbers that can be drawn again from the seed that is printed.
pub(crate) struct Random(u64);

impl Random {
    /// From the environment's seed, or a new one.
    pub(crate) fn new() -> Self {
        let seed = match std::env::var("HIGHWATER_SEED") {
            Ok(seed) => seed.parse().unwrap(),
            Err(_) => {
                let mut bytes = [0; 8];
                let mut source = File::open("/dev/urandom").unwrap();
                source.read_exact(&mut bytes).unwrap();
                u64::from_be_bytes(bytes)
            }
        };
        println!("HIGHWATER_SEED={seed}");
        Self(seed)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// Another source, independent of what this one gives next.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.below(u64::MAX))
    }
}

/// How often something is done: what the environment says, or the default.
pub(crate) fn count(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |count| count.parse().unwrap())
}

pub(crate) fn key(name: impl AsRef<[u8]>) -> Key {
    Key::new(name).unwrap()
}

pub(crate) fn value(bytes: impl AsRef<[u8]>) -> Value {
    Value::new(bytes).unwrap()
}

pub(crate) fn jobs() -> DomainName {
    DomainName::new("jobs").unwrap()
}

/// One lease for each first component of the path.
pub(crate) fn by_job() -> Policy {
    let rule = GuardRule::Prefix {
        delimiter: b'/',
        depth: 1,
    };
    Policy::default().with_guard(rule).unwrap()
}

/// The epoch of `jobs`, which is made if it isn't there yet.
pub(crate) async fn epoch_of_jobs(client: &Client) -> Epoch {
    let domain: Domain = match client.domain(&jobs()).await {
        Ok(domain) => domain,
        Err(_) => client.create_domain(&jobs(), &by_job()).await.unwrap(),
    };
    domain.epochs.current().epoch
}

pub(crate) fn authority(epoch: Epoch, sequence: u64, holder: &str) -> Authority {
    let sequence = Sequence::new(sequence).unwrap();
    Authority::new(Term { epoch, sequence }, Holder::new(holder).unwrap())
}

/// The small bounds, except those that are given.
pub(crate) fn with<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let name = |option: &'a str| option.split('=').next();
    let is_given = |small: &&str| {
        options
            .iter()
            .any(|given| name(given) == small.split('=').next())
    };
    let kept = SMALL.iter().copied().filter(|small| !is_given(small));
    kept.chain(options.iter().copied()).collect()
}

/// A connection, the epoch of `jobs`, and a session of its first term.
pub(crate) async fn writer(server: &Server, holder: &str) -> (Client, Epoch, Session) {
    let client = server.client().await;
    let epoch = epoch_of_jobs(&client).await;
    let session = client.session(jobs(), authority(epoch, 1, holder));
    (client, epoch, session)
}
