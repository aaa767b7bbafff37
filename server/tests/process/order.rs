//! The order of system calls: what must be on disk before a reply leaves, seen by a tracer.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{Place, SMALL, Server, authority, epoch_of_jobs, jobs, key, traced, value};

const CLIENTS: usize = 64;
const COMMITS_EACH: usize = 12;
/// Marks the keys of this test in what is written and sent.
const MARK: &str = "marked-";
const MARK_DIGITS: usize = 6;

/// One system call: where in the trace it began and ended.
struct Call {
    begin: usize,
    end: usize,
    name: String,
    text: String,
}

/// Reads a trace; a call that was interrupted by others in the trace is put together again.
fn calls(trace: &str) -> Vec<Call> {
    let mut open: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    let mut calls = Vec::new();
    for (at, line) in trace.lines().enumerate() {
        let Some((pid, rest)) = line.split_once(' ') else {
            continue;
        };
        let rest = rest.trim_start();
        if let Some(begun) = rest.strip_suffix(" <unfinished ...>") {
            open.insert(pid, (at, begun));
            continue;
        }
        let resumed = rest
            .strip_prefix("<... ")
            .and_then(|rest| rest.split_once(" resumed>"));
        let (begin, text) = match resumed {
            None => (at, rest.to_owned()),
            Some((_, tail)) => match open.remove(pid) {
                Some((begin, head)) => (begin, format!("{head}{tail}")),
                None => continue,
            },
        };
        let Some((name, _)) = text.split_once('(') else {
            continue;
        };
        let name = name.to_owned();
        calls.push(Call {
            begin,
            end: at,
            name,
            text,
        });
    }
    calls
}

impl Call {
    fn is_sync_of(&self, file: &str) -> bool {
        matches!(self.name.as_str(), "fdatasync" | "fsync")
            && self.is_good()
            && self.path().ends_with(file)
    }

    fn is_good(&self) -> bool {
        let result = self
            .text
            .rsplit_once(" = ")
            .map(|(_, result)| result.trim());
        result.is_some_and(|result| !result.starts_with(['-', '?']))
    }

    /// The path of the file descriptor that comes first.
    fn path(&self) -> &str {
        let inside = self
            .text
            .split_once('<')
            .and_then(|(_, rest)| rest.split_once('>'));
        inside.map_or("", |(path, _)| path)
    }

    /// The marked keys that its bytes contain.
    fn marks(&self) -> impl Iterator<Item = &str> {
        self.text
            .match_indices(MARK)
            .filter_map(|(at, _)| self.text.get(at..at + MARK.len() + MARK_DIGITS))
    }

    /// The names of a rename, without their directory.
    fn renamed(&self) -> Option<(&str, &str)> {
        if !self.name.starts_with("rename") || !self.is_good() {
            return None;
        }
        let mut names = self.text.split('"').skip(1).step_by(2);
        let file = |path: &'_ str| -> usize { path.rfind('/').map_or(0, |at| at + 1) };
        let (from, to) = (names.next()?, names.next()?);
        Some((from.get(file(from)..)?, to.get(file(to)..)?))
    }
}

/// What the trace shows, in the order of the ends of the calls.
struct Trace {
    calls: Vec<Call>,
    /// Where each marked key was written to the log first: the call's number.
    logged: BTreeMap<String, usize>,
    /// Where each marked key was sent to its client first.
    sent: BTreeMap<String, usize>,
}

impl Trace {
    fn read(path: &Path) -> Self {
        let text = std::fs::read(path).unwrap();
        let calls = calls(&String::from_utf8_lossy(&text));
        let (mut logged, mut sent) = (BTreeMap::new(), BTreeMap::new());
        for (at, call) in calls.iter().enumerate() {
            let is_log = call.name == "pwrite64" && call.path().contains("/log-");
            let is_send = matches!(
                call.name.as_str(),
                "sendto" | "sendmsg" | "writev" | "write"
            ) && call.path().contains(':');
            for mark in call.marks() {
                if is_log {
                    logged.entry(mark.to_owned()).or_insert(at);
                } else if is_send {
                    sent.entry(mark.to_owned()).or_insert(at);
                }
            }
        }
        Self {
            calls,
            logged,
            sent,
        }
    }

    /// Whether a call of a kind began after `after` ended and ended before `before` began.
    fn between(&self, after: usize, before: usize, wanted: impl Fn(&Call) -> bool) -> bool {
        let is_between = |call: &&Call| call.begin > after && call.end < before;
        self.calls.iter().filter(is_between).any(wanted)
    }

    /// Replies whose record wasn't synced before they left.
    fn early_replies(&self) -> Vec<String> {
        let mut early = Vec::new();
        for (key, sent) in &self.sent {
            let Some(logged) = self.logged.get(key).map(|at| &self.calls[*at]) else {
                early.push(format!("{key} was never logged"));
                continue;
            };
            let file = logged.path();
            let begin = self.calls[*sent].begin;
            if !self.between(logged.end, begin, |call| call.is_sync_of(file)) {
                early.push(format!("{key} in {file}"));
            }
        }
        early
    }

    /// Segments that got records before the one before them was synced for the last time.
    fn unsynced_rotations(&self) -> (usize, Vec<String>) {
        let mut first_reply: BTreeMap<&str, usize> = BTreeMap::new();
        for (key, sent) in &self.sent {
            let file = self.calls[self.logged[key]].path();
            let begin = self.calls[*sent].begin;
            let entry = first_reply.entry(file).or_insert(begin);
            *entry = begin.min(*entry);
        }
        let files: Vec<_> = first_reply.iter().collect();
        let mut wrong = Vec::new();
        for pair in files.windows(2) {
            let ((old, _), (new, reply)) = (pair[0], pair[1]);
            let is_last = |call: &&Call| call.name == "pwrite64" && call.path() == *old;
            let last = self
                .calls
                .iter()
                .filter(is_last)
                .map(|call| call.end)
                .max()
                .unwrap();
            if !self.between(last, *reply, |call| call.is_sync_of(old)) {
                wrong.push(format!("{old}, then {new}"));
            }
        }
        (files.len().saturating_sub(1), wrong)
    }

    /// Files that came to be without a sync of their directory before a reply rested on them.
    fn unsynced_names(&self, directory: &str) -> (usize, Vec<String>) {
        let mut wrong = Vec::new();
        let mut checked = 0;
        for call in &self.calls {
            let created = call.name == "openat" && call.text.contains("O_CREAT|O_EXCL");
            let Some(name) = call.renamed().map(|(_, to)| to).or_else(|| {
                let path = call
                    .text
                    .split('"')
                    .nth(1)
                    .filter(|_| created && call.is_good())?;
                path.rsplit('/')
                    .next()
                    .filter(|name| !name.ends_with(".tmp"))
            }) else {
                continue;
            };
            // A log file matters to replies for what is in it, everything else to any reply.
            let rests_on = |key: &str| {
                !name.starts_with("log-")
                    || self
                        .logged
                        .get(key)
                        .is_some_and(|at| self.calls[*at].path().ends_with(name))
            };
            let replies = self.sent.iter().filter(|(key, _)| rests_on(key.as_str()));
            let replies = replies
                .map(|(_, sent)| self.calls[*sent].begin)
                .filter(|begin| *begin > call.end);
            let Some(reply) = replies.min().filter(|_| !name.starts_with("spare-")) else {
                continue;
            };
            checked += 1;
            if !self.between(call.end, reply, |sync| sync.is_sync_of(directory)) {
                wrong.push(name.to_owned());
            }
        }
        (checked, wrong)
    }

    /// Segments that were given back before an index that covers them was synced.
    fn early_recycling(&self) -> (usize, Vec<String>) {
        let mut wrong = Vec::new();
        let mut recycled = 0;
        for call in &self.calls {
            let Some(name) = given_back(call) else {
                continue;
            };
            recycled += 1;
            let wrote = |other: &&Call| {
                other.name == "pwrite64" && other.path().ends_with(name) && other.end < call.begin
            };
            let last = self
                .calls
                .iter()
                .filter(wrote)
                .map(|call| call.end)
                .max()
                .unwrap_or(0);
            if !self.between(last, call.begin, |sync| sync.is_sync_of("/index.redb")) {
                wrong.push(name.to_owned());
            }
        }
        (recycled, wrong)
    }
}

/// The segment that a call takes out of the log.
fn given_back(call: &Call) -> Option<&str> {
    let name = match call.renamed() {
        Some((from, _)) => from,
        None if call.name.starts_with("unlink") && call.is_good() => {
            call.text.split('"').nth(1)?.rsplit('/').next()?
        }
        None => return None,
    };
    name.starts_with("log-").then_some(name)
}

/// Writes marked keys from many clients at once, so that groups, segments and checkpoints follow.
async fn load(server: &Server) {
    let client = server.client().await;
    let epoch = epoch_of_jobs(&client).await;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let holder = format!("w{number}");
        let session = server
            .client()
            .await
            .session(jobs(), authority(epoch, 1, &holder));
        clients.push(tokio::spawn(async move {
            for commit in 0..COMMITS_EACH {
                let number = number * COMMITS_EACH + commit;
                let key = key(format!("{MARK}{number:0MARK_DIGITS$}"));
                session.put(key, value([b'.'; 700])).await.unwrap();
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_told_before_it_is_on_disk() {
    let place = Place::new();
    let trace = place.beside("trace");
    let out = trace.to_str().unwrap().to_owned();
    let watched = "-etrace=pwrite64,fdatasync,fsync,rename,renameat,renameat2,openat,mkdir,\
                   unlink,unlinkat,sendto,sendmsg,writev,write";
    let Some(command) = traced(&["-yy", "-s", "131072", watched, "-o", &out]) else {
        return;
    };
    let server = place.launch(command, &SMALL).unwrap();
    load(&server).await;
    server.signal("TERM");
    assert!(server.ended().await.success());

    let trace = Trace::read(&trace);
    assert_eq!(trace.sent.len(), CLIENTS * COMMITS_EACH);
    assert_eq!(trace.early_replies(), Vec::<String>::new());
    let (rotations, wrong) = trace.unsynced_rotations();
    assert!(rotations > 3, "{rotations}");
    assert_eq!(wrong, Vec::<String>::new());
    let (names, wrong) = trace.unsynced_names("/data");
    assert!(names > rotations, "{names}");
    assert_eq!(wrong, Vec::<String>::new());
    let (recycled, wrong) = trace.early_recycling();
    assert!(recycled > 3, "{recycled}");
    assert_eq!(wrong, Vec::<String>::new());
    println!("{rotations} rotations, {names} new names, {recycled} segments given back");
}

/// A trace in which every rule is broken once, and the same trace in order.
#[test]
fn a_wrong_order_is_seen() {
    let lines = [
        "1 openat(AT_FDCWD</>, \"/t/data/index.redb\", O_CREAT|O_EXCL, 0600) = 3</t/data/index.redb>",
        "1 fsync(4</t/data>) = 0",
        "1 rename(\"/t/data/spare-1.hw\", \"/t/data/log-1.hw\") = 0",
        "1 fsync(4</t/data>) = 0",
        "1 pwrite64(5</t/data/log-1.hw>, \"marked-000001\", 13, 0 <unfinished ...>",
        "2 fsync(4</t/data>) = 0",
        "1 <... pwrite64 resumed>) = 13",
        "1 fdatasync(5</t/data/log-1.hw>) = 0",
        "1 sendto(9<TCP:[127.0.0.1:1->127.0.0.1:2]>, \"marked-000001\", 13, 0, NULL, 0) = 13",
        "1 rename(\"/t/data/spare-2.hw\", \"/t/data/log-2.hw\") = 0",
        "1 fsync(4</t/data>) = 0",
        "1 pwrite64(5</t/data/log-1.hw>, \"seal\", 4, 13) = 4",
        "1 fdatasync(5</t/data/log-1.hw>) = 0",
        "1 pwrite64(6</t/data/log-2.hw>, \"marked-000002\", 13, 0) = 13",
        "1 fdatasync(6</t/data/log-2.hw>) = 0",
        "1 sendto(9<TCP:[127.0.0.1:1->127.0.0.1:2]>, \"marked-000002\", 13, 0, NULL, 0) = 13",
        "1 fdatasync(3</t/data/index.redb>) = 0",
        "1 rename(\"/t/data/log-1.hw\", \"/t/data/spare-3.hw\") = 0",
    ];
    // What is left out, and whether (replies, rotations, names, recycling) are still in order.
    let cases: [(&[usize], [bool; 4]); 7] = [
        (&[], [true, true, true, true]),
        (&[7], [false, true, true, true]),
        (&[14], [false, true, true, true]),
        (&[12], [true, false, true, true]),
        (&[10], [true, true, false, true]),
        (&[1, 3, 5], [true, true, false, true]),
        (&[16], [true, true, true, false]),
    ];
    let place = Place::new();
    for (left_out, in_order) in cases {
        let kept = lines
            .iter()
            .enumerate()
            .filter(|(at, _)| !left_out.contains(at));
        let text: Vec<_> = kept.map(|(_, line)| *line).collect();
        std::fs::write(place.beside("trace"), text.join("\n")).unwrap();
        let trace = Trace::read(&place.beside("trace"));
        let found = [
            trace.early_replies().is_empty(),
            trace.unsynced_rotations().1.is_empty(),
            trace.unsynced_names("/data").1.is_empty(),
            trace.early_recycling().1.is_empty(),
        ];
        assert_eq!(found, in_order, "{left_out:?}");
    }
}
