//! Writers, killed servers, and a record of what was acknowledged that the server never sees.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use highwater_client::{Client, ClientError, ScanKeys};
use highwater_core::{Commit, Condition, Epoch, Generation, Guard, Receipt, Rejection};
use highwater_proto::convert::{FromWire, ToWire};
use highwater_proto::v1;
use highwater_proto::v1::highwater_client::HighwaterClient;
use highwater_proto::v1::streamed_verdict::Verdict;
use tokio::sync::watch;
use tonic::transport::Channel;

use crate::ledger::{Attempt, Ledger, Outcome, State};
use crate::support::{
    Place, Random, SMALL, Server, authority, count, epoch_of_jobs, jobs, key, value,
};

const WRITERS: usize = 32;
const SHARED: usize = 4;
const CONNECTIONS: usize = 4;
const BATCH: usize = 8;

/// Everything that was told to anybody.
#[derive(Default)]
struct Told {
    guards: Vec<Ledger>,
    /// What was acknowledged at each revision, over all rounds.
    revisions: BTreeMap<u64, String>,
    /// The next sequence of each guard: no two attempts of different writers draw the same.
    drawn: Vec<u64>,
    accepted: u64,
    unknown: u64,
    refused: u64,
    faults: Vec<String>,
    stale_accepted: u64,
}

/// One commit to try, and what is known of it beforehand.
struct Step {
    guard: usize,
    attempt: Attempt,
    holder: String,
    condition: Option<Condition>,
    must_be_refused: bool,
    must_be_accepted: bool,
}

/// One writer: its own guard has its own number, the shared ones come behind all of those.
struct Writer {
    number: usize,
    epoch: Epoch,
    round: u64,
    made: u64,
    random: Random,
    told: Arc<Mutex<Told>>,
    progress: Arc<watch::Sender<u64>>,
    /// The generation of its own keys, where it is known.
    own: Option<u64>,
}

fn name_of(guard: usize) -> String {
    format!("g{guard:02}")
}

impl Told {
    fn record(&mut self, step: Step, outcome: Outcome) {
        let Step { guard, attempt, .. } = step;
        match outcome {
            Outcome::Accepted(revision) => {
                self.accepted += 1;
                let content = format!("{guard} {:?}", attempt.value);
                if let Some(before) = self.revisions.insert(revision, content) {
                    self.faults
                        .push(format!("revision {revision}, before {before}"));
                }
                if step.must_be_refused {
                    self.stale_accepted += 1;
                    self.faults.push(format!("{guard}: accepted {attempt:?}"));
                }
            }
            Outcome::Refused => {
                self.refused += 1;
                if step.must_be_accepted {
                    self.faults.push(format!("{guard}: refused {attempt:?}"));
                }
            }
            Outcome::Unknown => self.unknown += 1,
        }
        self.guards[guard]
            .attempts
            .push(Attempt { outcome, ..attempt });
    }
}

impl Writer {
    /// Draws the next thing to try.
    fn step(&mut self) -> Step {
        let told = Arc::clone(&self.told);
        let mut told = told.lock().unwrap();
        let own = self.number;
        let shared = WRITERS + usize::try_from(self.random.below(SHARED as u64)).unwrap();
        let kind = self.random.below(20);
        let guard = if kind < 15 { own } else { shared };
        let acknowledged = told.guards[guard].acknowledged();
        let mut holder = format!("w{own}");
        let mut condition = None;
        let sequence = match kind {
            // The same term again, or a newer one.
            0..2 if acknowledged > 0 => told.drawn[guard],
            // An older one than was acknowledged.
            8..11 if acknowledged > 1 => 1 + self.random.below(acknowledged - 1),
            // The acknowledged one, by somebody who isn't its holder.
            11..13 | 19 if acknowledged > 0 => {
                holder = "thief".into();
                acknowledged
            }
            13..15 if acknowledged > 0 => {
                condition = Some(Condition::GenerationIs {
                    key: key(format!("{}/never", name_of(guard))),
                    generation: Some(
                        Generation::new((1 << 48) + self.random.below(1 << 60)).unwrap(),
                    ),
                });
                told.drawn[guard]
            }
            // A term that was drawn a while ago: whether it is still the highest depends.
            15 if told.drawn[guard] > 2 => told.drawn[guard] - 1,
            _ => {
                told.drawn[guard] += 1 + self.random.below(3);
                told.drawn[guard]
            }
        };
        if kind == 15 {
            // Nobody but its drawer may hold it; this one never drew it.
            holder = format!("w{own}-again");
        }
        let is_older = sequence < acknowledged || holder == "thief";
        let must_be_refused = is_older || condition.is_some();
        Step {
            guard,
            attempt: Attempt {
                sequence,
                value: self.draw_value(),
                outcome: Outcome::Unknown,
            },
            holder,
            condition,
            must_be_refused,
            must_be_accepted: guard == own && !must_be_refused,
        }
    }

    fn draw_value(&mut self) -> Option<String> {
        self.made += 1;
        let padding = "x".repeat(usize::try_from(self.random.below(1_500)).unwrap());
        let (number, round, made) = (self.number, self.round, self.made);
        (self.random.below(8) > 0).then(|| format!("{number}.{round}.{made}.{padding}"))
    }

    fn commit(&self, step: &Step) -> Commit {
        let name = name_of(step.guard);
        let presented = authority(self.epoch, step.attempt.sequence, &step.holder);
        let commit = Commit::new(jobs()).under(presented);
        let commit = match &step.condition {
            Some(condition) => commit.when(condition.clone()),
            None => commit,
        };
        let (left, right) = (key(format!("{name}/left")), key(format!("{name}/right")));
        match &step.attempt.value {
            Some(text) => commit.put(left, value(text)).put(right, value(text)),
            None => commit.delete(left).delete(right),
        }
    }

    fn note(&mut self, step: Step, result: Result<Receipt, ClientError>) -> bool {
        let outcome = match &result {
            Ok(receipt) => Outcome::Accepted(receipt.revision.get()),
            Err(error) if error.may_have_happened() => Outcome::Unknown,
            Err(_) => Outcome::Refused,
        };
        let goes_on = match &result {
            Ok(_) => true,
            Err(error) => error.rejection().is_some(),
        };
        if outcome == Outcome::Refused && !goes_on {
            // It never arrived.
            return false;
        }
        self.told.lock().unwrap().record(step, outcome);
        self.progress.send_modify(|progress| *progress += 1);
        goes_on
    }

    /// One commit after the other, its own ones under a condition on what it last saw.
    async fn run_unary(mut self, client: Client) {
        loop {
            let mut step = self.step();
            if step.must_be_accepted {
                step.condition = Some(Condition::GenerationIs {
                    key: key(format!("{}/left", name_of(step.guard))),
                    generation: self.own.and_then(Generation::new),
                });
            }
            let result = client.commit(&self.commit(&step)).await;
            if step.guard == self.number
                && let Ok(receipt) = &result
            {
                self.own = receipt.writes[0].generation.map(Generation::get);
            }
            if !self.note(step, result) {
                return;
            }
        }
    }

    /// Batches over streams: the verdicts come in the order of the commits.
    async fn run_streamed(mut self, mut rpc: HighwaterClient<Channel>) {
        loop {
            let steps: Vec<_> = (0..BATCH).map(|_| self.step()).collect();
            let commits = steps.iter().zip(0..).map(|(step, id)| v1::StreamedCommit {
                id,
                commit: Some(self.commit(step).to_wire()),
            });
            let messages: Vec<_> = commits
                .map(|commit| v1::CommitStreamRequest {
                    commits: vec![commit],
                })
                .collect();
            let mut results = Vec::new();
            if let Ok(answers) = rpc.commit_stream(tokio_stream::iter(messages)).await {
                let mut answers = answers.into_inner();
                while let Ok(Some(answer)) = answers.message().await {
                    for verdict in answer.verdicts {
                        assert_eq!(verdict.id, results.len() as u64);
                        results.push(result_of(verdict));
                    }
                }
            }
            let mut goes_on = true;
            let mut results = results.into_iter();
            for step in steps {
                let unknown = || Err(ClientError::OutcomeUnknown { cause: None });
                goes_on &= self.note(step, results.next().unwrap_or_else(unknown));
            }
            if !goes_on {
                return;
            }
        }
    }
}

fn result_of(verdict: v1::StreamedVerdict) -> Result<Receipt, ClientError> {
    match verdict.verdict.unwrap() {
        Verdict::Receipt(receipt) => Ok(Receipt::from_wire(receipt).unwrap()),
        Verdict::Rejection(rejection) => {
            let rejection = Rejection::from_wire(rejection).unwrap();
            Err(ClientError::of_rejection(Box::new(rejection)))
        }
        Verdict::Indeterminate(_) => Err(ClientError::OutcomeUnknown { cause: None }),
    }
}

/// What is stored under a guard; an error where its two keys disagree.
async fn look(client: &Client, guard: usize) -> Result<State, String> {
    let name = Guard::new(name_of(guard)).unwrap();
    let fence = client.fence(&jobs(), &name).await.unwrap();
    let fence = fence.map_or(0, |fence| fence.term.sequence.get());
    let keys = ScanKeys::Guard(name);
    let mut scan = client.scan(&jobs(), keys, None, None).await.unwrap();
    let page = scan.next().await.unwrap().unwrap();
    let records = page.records.iter().map(|(key, record)| {
        let text = String::from_utf8(record.value.as_bytes().to_vec()).unwrap();
        (key.as_bytes().to_vec(), (text, record.generation.get()))
    });
    let records: Vec<_> = records.collect();
    let value = match records.as_slice() {
        [] => None,
        [(left, one), (right, other)]
            if one == other && left.ends_with(b"/left") && right.ends_with(b"/right") =>
        {
            Some(one.clone())
        }
        _ => return Err(format!("half a commit: {records:?}")),
    };
    Ok(State { value, fence })
}

/// Compares every guard with what was told, and begins the next round from what is there.
async fn compare(server: &Server, told: &Mutex<Told>) -> u64 {
    let client = server.client().await;
    let mut lost = 0;
    for guard in 0..WRITERS + SHARED {
        let found = look(&client, guard).await;
        let mut told = told.lock().unwrap();
        let ledger = std::mem::take(&mut told.guards[guard]);
        let found = found.and_then(|state| ledger.agrees(&state).map(|()| state));
        match found {
            Ok(state) => told.guards[guard].before = state,
            Err(fault) => {
                lost += 1;
                told.faults.push(format!("guard {guard}: {fault}"));
            }
        }
    }
    lost
}

/// Lets the writers work until they have got so many answers, and kills the server under them.
async fn round(server: Server, number: u64, random: &mut Random, told: &Arc<Mutex<Told>>) {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push((server.client().await, server.raw().await));
    }
    let epoch = epoch_of_jobs(&connections[0].0).await;
    let (progress, mut seen) = watch::channel(0);
    let progress = Arc::new(progress);
    let mut writers = Vec::new();
    for own in 0..WRITERS {
        let known = told.lock().unwrap().guards[own].before.value.clone();
        let writer = Writer {
            number: own,
            epoch,
            round: number,
            made: 0,
            random: random.fork(),
            told: Arc::clone(told),
            progress: Arc::clone(&progress),
            own: known.map(|(_, generation)| generation),
        };
        let (client, raw) = connections[own % CONNECTIONS].clone();
        writers.push(if own % 3 == 0 {
            tokio::spawn(writer.run_streamed(raw))
        } else {
            tokio::spawn(writer.run_unary(client))
        });
    }
    let enough = 50 + random.below(1_500);
    seen.wait_for(|progress| *progress >= enough).await.unwrap();
    server.kill().await;
    for writer in writers {
        writer.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_kill_loses_what_was_acknowledged_or_lets_a_stale_writer_in() {
    let rounds = count("HIGHWATER_KILL_ROUNDS", 8);
    let mut random = Random::new();
    let place = Place::new();
    let told = Arc::new(Mutex::new(Told {
        guards: vec![Ledger::default(); WRITERS + SHARED],
        drawn: vec![0; WRITERS + SHARED],
        ..Told::default()
    }));
    let mut lost = 0;
    for number in 0..rounds {
        let server = place.start(&SMALL);
        if number > 0 {
            lost += compare(&server, &told).await;
        }
        round(server, number, &mut random, &told).await;
    }
    let server = place.start(&SMALL);
    lost += compare(&server, &told).await;
    let told = told.lock().unwrap();
    println!(
        "rounds {rounds}, acknowledged {}, unknown {}, refused {}, lost {lost}, stale accepted {}",
        told.accepted, told.unknown, told.refused, told.stale_accepted
    );
    assert_eq!(told.faults, Vec::<String>::new());
    assert_eq!((lost, told.stale_accepted), (0, 0));
    assert!(told.accepted > 0 && told.refused > 0);
}
