//! The stage of a script: a store on a simulated disk, and the commands that it understands.

use std::collections::BTreeSet;
use std::time::Duration;

use highwater::{
    Config, Error, Guard, GuardedRead, KeyRange, Page, Revision, Store, TakeOver, WatchRequest,
};
use highwater_tests::disk::{Fault, Op, SimDisk};
use highwater_tests::model::guard_touched;
use highwater_tests::raw::Bytes;
use highwater_tests::seen;

use super::parse::{Clauses, Scope, bytes, domain_of, policy};
use super::print;
use crate::support::{domain, fence, intents, key, open, place_of, rows, tight};

pub(super) struct Stage {
    disk: SimDisk,
    config: Config,
    store: Option<Store>,
    /// Every guard that was named or touched, by domain: there is no list of fences.
    guards: BTreeSet<(String, Bytes)>,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self {
            disk: SimDisk::default(),
            config: tight(),
            store: None,
            guards: BTreeSet::new(),
        }
    }

    /// The store, opened by the first command that needs it.
    fn store(&mut self) -> Store {
        let opened = || open(&self.disk, &self.config);
        self.store.get_or_insert_with(opened).clone()
    }

    /// Runs a command and prints what comes of it.
    pub(super) fn command(&mut self, command: &str) -> String {
        let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
        match verb {
            "remember" => {
                let deletions = rest.strip_suffix(" deletions").unwrap();
                self.config.deletions_max = deletions.parse().unwrap();
                String::new()
            }
            "domain" => self.domain(rest),
            "commit" | "judge" | "read" | "take" => self.request(verb, rest),
            "get" => self.get(rest),
            "scan" => self.scan(rest),
            "watch" => self.watch(rest),
            "close" | "kill" => self.end(verb),
            "fail" => {
                self.disk.plant(Fault {
                    op: Op::SyncData,
                    file: "log-",
                    nth: 1,
                    sticky: false,
                });
                String::new()
            }
            other => panic!("no command: {other}"),
        }
    }

    fn marks(&mut self) -> Vec<String> {
        let status = self.store().status();
        let mut marks = vec![
            status.destination.to_string(),
            status.incarnation.mark().to_string(),
        ];
        for domain in self.store().domains() {
            let mark = domain.epochs.current().epoch.mark().get();
            marks.push(format!("{mark:016x}"));
            marks.push(format!("{:016x}", mark ^ 1));
        }
        marks
    }

    fn error(&mut self, error: &Error) -> String {
        let marks = self.marks();
        print::error(error, &marks)
    }

    fn scope(&mut self, name: &str) -> Scope {
        let store = self.store();
        let place = place_of(&store);
        let epoch = store.domain(&domain(name)).map_or((1, 0), |domain| {
            let epoch = domain.epochs.current().epoch;
            (epoch.number().get(), epoch.mark().get())
        });
        Scope {
            start: u64::from(place.1) << 48,
            place,
            epoch,
        }
    }

    fn domain(&mut self, words: &str) -> String {
        let words: Vec<&str> = words.split_whitespace().collect();
        let (name, settings) = words.split_first().unwrap();
        let made = self
            .store()
            .create_domain(domain(name), policy(settings), None);
        match made {
            Ok(made) => format!("  made at {}\n", print::at(made.created_at.get())),
            Err(error) => self.error(&error),
        }
    }

    /// The whole state in one line: what is there, and the fences of every guard seen so far.
    fn state(&mut self) -> String {
        let snapshot = self.store().snapshot().unwrap();
        let mut text = print::at(snapshot.revision().get());
        for made in snapshot.domains() {
            let name = made.name.to_string();
            let rows = rows(&snapshot, &name, &KeyRange::all(), 100);
            let rows: Vec<_> = rows.iter().map(|(key, row)| print::row(key, row)).collect();
            let named = self.guards.iter().filter(|(of, _)| *of == name);
            let fences = named.filter_map(|(_, guard)| {
                let fence = fence(&snapshot, &name, guard)?;
                Some(format!("{} at {}", print::name(guard), print::auth(&fence)))
            });
            let fences: Vec<_> = fences.collect();
            let rows = if rows.is_empty() {
                "empty".into()
            } else {
                rows.join(", ")
            };
            text.push_str(&format!(" | {name}: {rows}"));
            if !fences.is_empty() {
                text.push_str(&format!(" [{}]", fences.join(", ")));
            }
            let known = intents(&snapshot, &name, 100);
            if !known.is_empty() {
                let known: Vec<_> = known
                    .iter()
                    .map(|(id, plan)| print::plan(id, plan))
                    .collect();
                text.push_str(&format!(" ({})", known.join("; ")));
            }
        }
        text
    }

    fn request(&mut self, verb: &str, words: &str) -> String {
        let name = domain_of(words);
        let clauses = self.scope(&name).clauses(&name, words);
        self.note_guards(&name, &clauses);
        let before = self.state();
        let text = match verb {
            "read" => self.read(&clauses),
            "take" => self.take(&clauses),
            _ => self.commit(verb, &clauses),
        };
        let after = self.state();
        if before == after {
            return format!("{text}  unchanged: {after}\n");
        }
        format!("{text}  before: {before}\n  after:  {after}\n")
    }

    fn note_guards(&mut self, name: &str, clauses: &Clauses) {
        let Some(made) = self.store().domain(&domain(name)) else {
            return;
        };
        let changes = &clauses.request.changes;
        let touched = changes
            .iter()
            .filter_map(|c| guard_touched(&made.policy, c));
        for guard in touched.chain(clauses.guards.iter().cloned()) {
            self.guards.insert((name.to_owned(), guard));
        }
    }

    fn commit(&mut self, verb: &str, clauses: &Clauses) -> String {
        let commit = clauses.request.typed().unwrap();
        let verdict = match verb {
            "judge" => self.store().judge(&commit),
            _ => self.store().commit(commit),
        };
        match verdict {
            Ok(receipt) => print::receipt(&receipt),
            Err(error) => self.error(&error),
        }
    }

    fn read(&mut self, clauses: &Clauses) -> String {
        let commit = clauses.request.typed().unwrap();
        let guards = clauses
            .guards
            .iter()
            .map(|guard| Guard::new(guard).unwrap());
        let admitted = self.store().snapshot().unwrap().admit(&GuardedRead {
            domain: commit.domain.clone(),
            destination: commit.destination,
            authority: one(&commit),
            caller: commit.caller.clone(),
            guards: guards.collect(),
        });
        match admitted {
            Ok(()) => "  admitted\n".into(),
            Err(error) => self.error(&error),
        }
    }

    fn take(&mut self, clauses: &Clauses) -> String {
        let commit = clauses.request.typed().unwrap();
        let taken = self.store().take_over(TakeOver {
            domain: commit.domain.clone(),
            guard: Guard::new(&clauses.guards[0]).unwrap(),
            authority: one(&commit),
            intents: Vec::new(),
            destination: commit.destination,
            caller: commit.caller.clone(),
            limit: 100,
        });
        match taken {
            Ok(taken) => print::receipt(&taken.receipt) + &page(&taken.page),
            Err(error) => self.error(&error),
        }
    }

    fn get(&mut self, words: &str) -> String {
        let name = domain_of(words);
        let wanted = words.split(';').next_back().unwrap().trim();
        let found = self.store().get(&domain(&name), &key(bytes(wanted)));
        match found {
            Ok(Some(record)) => {
                format!("  {}\n", print::row(&bytes(wanted), &seen::row(&record)))
            }
            Ok(None) => "  absent\n".into(),
            Err(error) => self.error(&error),
        }
    }

    fn scan(&mut self, words: &str) -> String {
        let name = domain_of(words);
        let last = words.split(';').next_back().unwrap().trim();
        let (prefix, limit) = last.split_once(' ').unwrap_or((last, "100"));
        let range = KeyRange::of_prefix(&bytes(prefix));
        let snapshot = self.store().snapshot().unwrap();
        let found = snapshot.scan(&domain(&name), &range, limit.parse().unwrap());
        match found {
            Ok(found) => page(&found),
            Err(error) => self.error(&error),
        }
    }

    fn watch(&mut self, words: &str) -> String {
        let name = domain_of(words);
        let start = self.scope(&name).start;
        let after: u64 = words.rsplit(' ').next().unwrap().parse().unwrap();
        let watch = self.store().watch(WatchRequest {
            domain: domain(&name),
            range: KeyRange::all(),
            fences: true,
            leases: false,
            after: Revision::new(start + after),
        });
        let mut watch = match watch {
            Ok(watch) => watch,
            Err(error) => return self.error(&error),
        };
        let mut text = String::new();
        while let Some(event) = watch.next_timeout(Duration::ZERO).unwrap() {
            let changes = event.changes.iter().map(change).collect::<Vec<_>>();
            let at = print::at(event.revision.get());
            text.push_str(&format!("  {at}: {}\n", changes.join(", ")));
        }
        text
    }

    /// Ends the store in good order, or as a killed process leaves it, and opens it again.
    fn end(&mut self, how: &str) -> String {
        let store = self.store();
        if how == "close" {
            store.close().unwrap();
        } else {
            self.disk = SimDisk::with_files(&self.disk.files());
        }
        self.store = None;
        let state = self.state();
        format!("  reopened: {state}\n")
    }
}

fn one(commit: &highwater::Commit) -> highwater::Authority {
    match &commit.authority {
        highwater::Authorities::One(authority) => authority.clone(),
        other => panic!("one authority, not {other:?}"),
    }
}

fn page(page: &Page) -> String {
    let mut text = String::new();
    for (key, record) in &page.records {
        let row = print::row(&key.as_bytes().to_vec(), &seen::row(record));
        text.push_str(&format!("  {row}\n"));
    }
    if let Some(next) = &page.next {
        text.push_str(&format!("  next {next}\n"));
    }
    text
}

fn change(change: &highwater::WatchChange) -> String {
    use highwater::WatchChange;
    match change {
        WatchChange::Put { key, record } => {
            format!(
                "put {}",
                print::row(&key.as_bytes().to_vec(), &seen::row(record))
            )
        }
        WatchChange::Metadata { key, record } => {
            format!(
                "label {}",
                print::row(&key.as_bytes().to_vec(), &seen::row(record))
            )
        }
        WatchChange::Deleted { key } => format!("deleted {key}"),
        WatchChange::Fenced { guard, fence } => {
            let fence = print::auth(&seen::fence(fence));
            format!("fenced {} at {fence}", print::name(guard.as_bytes()))
        }
        WatchChange::Leased { .. } => panic!("leases weren't asked for"),
    }
}
