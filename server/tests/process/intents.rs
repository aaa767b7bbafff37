//! Steps of intents against a process that is killed, stopped and overloaded: each takes effect
//! once.

use std::time::Duration;

use highwater_client::{Client, ClientError, ClientOptions};
use highwater_core::{Commit, Condition, Epoch, Generation, IntentId, IntentRecord, Receipt, Step};
use tokio::sync::watch;

use crate::support::{
    Place, SMALL, TOO_LONG, authority, count, epoch_of_jobs, jobs, key, value, with, writer,
};

const STEPS: u64 = 64;
const WORKERS: u64 = 8;

pub(crate) fn id(name: &str) -> IntentId {
    IntentId::new(name).unwrap()
}

/// A write that is refused if it runs twice, as the first step of an intent.
fn once(epoch: Epoch, sequence: u64, name: &str) -> Commit {
    let key = key(format!("once/{name}"));
    let absent = Condition::GenerationIs {
        key: key.clone(),
        generation: None,
    };
    Commit::new(jobs())
        .under(authority(epoch, sequence, "w"))
        .when(absent)
        .put(key, value("v"))
        .for_intent(id(name), Step::FIRST)
}

/// The receipt of then, told again, and nothing new.
pub(crate) async fn assert_told_again(client: &Client, commit: &Commit, first: &Receipt) {
    let before = client.status().await.unwrap().revision;
    let told = client.commit(commit).await.unwrap();
    let replayed = true;
    let first = first.clone();
    assert_eq!(told, Receipt { replayed, ..first });
    assert_eq!(client.status().await.unwrap().revision, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_told_again_after_a_kill_and_under_a_stale_term() {
    let place = Place::new();
    let server = place.start(&SMALL);
    let (client, epoch, session) = writer(&server, "w").await;
    let commit = once(epoch, 1, "i");
    let first = client.commit(&commit).await.unwrap();
    assert!(!first.replayed);
    assert_told_again(&client, &commit, &first).await;
    let fence = Commit::new(jobs())
        .under(authority(epoch, 9, "newer"))
        .advance(highwater_core::Guard::new("once").unwrap());
    client.commit(&fence).await.unwrap();
    assert_told_again(&client, &commit, &first).await;
    server.kill().await;

    let server = place.start(&SMALL);
    let client = server.client().await;
    assert_told_again(&client, &commit, &first).await;
    let next = session.draft().put(key("once/i"), value("late"));
    let next = next.for_intent(id("i"), Step::FIRST.next().unwrap());
    let refused = client
        .commit(&next.under(authority(epoch, 1, "w")))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, ClientError::LostAuthority(_)),
        "{refused:?}"
    );
}

/// Counts in its own key, one step of an intent for each number, each on the generation before.
struct Worker {
    number: u64,
    done: u64,
    generation: Option<Generation>,
    unanswered: Option<Commit>,
}

impl Worker {
    fn key(&self) -> highwater_core::Key {
        key(format!("count/{}", self.number))
    }

    fn intent(&self, at: u64) -> IntentId {
        id(&format!("{}-{}", self.number, at / STEPS))
    }

    fn next(&self, epoch: Epoch) -> Commit {
        let step = u32::try_from(self.done % STEPS).unwrap() + 1;
        let (key, generation) = (self.key(), self.generation);
        let commit = Commit::new(jobs())
            .under(authority(epoch, 1, "all"))
            .when(Condition::GenerationIs { key, generation })
            .put(self.key(), value((self.done + 1).to_string()))
            .for_intent(self.intent(self.done), Step::new(step).unwrap());
        if u64::from(step) == STEPS {
            commit.completing()
        } else {
            commit
        }
    }

    /// Goes on from what wasn't answered, until something isn't again.
    async fn run(mut self, client: Client, epoch: Epoch, progress: watch::Sender<u64>) -> Self {
        loop {
            let unanswered = self.unanswered.take();
            let commit = unanswered.unwrap_or_else(|| self.next(epoch));
            match client.commit(&commit).await {
                Ok(receipt) => {
                    self.done += 1;
                    self.generation = receipt.writes[0].generation;
                    progress.send_modify(|progress| *progress += 1);
                }
                Err(error) => {
                    assert!(error.rejection().is_none(), "{error:?}");
                    self.unanswered = Some(commit);
                    return self;
                }
            }
        }
    }

    /// Exactly what was answered, and at most the one that wasn't.
    async fn compare(&self, client: &Client) {
        let found = client.get(&jobs(), &self.key(), None).await.unwrap();
        let record = found.record.unwrap();
        assert_eq!(record.value, value(self.done.to_string()));
        assert_eq!(Some(record.generation), self.generation);
        let last = self.intent(self.done - 1);
        let found = client.intent(&jobs(), &last).await.unwrap();
        let IntentRecord { steps, .. } = found.record.unwrap();
        let last = u64::from(steps.last().unwrap().step.get());
        assert_eq!(last, (self.done - 1) % STEPS + 1);
        assert_eq!(
            steps.last().unwrap().receipt.writes[0].generation,
            self.generation
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_step_is_lost_or_doubled_when_the_server_is_killed_under_load() {
    let place = Place::new();
    let new = |number| Worker {
        number,
        done: 0,
        generation: None,
        unanswered: None,
    };
    let mut workers: Vec<Worker> = (0..WORKERS).map(new).collect();
    let mut unanswered = 0;
    for _ in 0..count("HIGHWATER_STEP_KILLS", 4) {
        let server = place.start(&SMALL);
        let epoch = epoch_of_jobs(&server.client().await).await;
        let (progress, mut seen) = watch::channel(0);
        let mut running = Vec::new();
        for worker in workers.drain(..) {
            let client = server.client().await;
            running.push(tokio::spawn(worker.run(client, epoch, progress.clone())));
        }
        let enough = seen.wait_for(|progress| *progress > 40 * WORKERS);
        tokio::time::timeout(TOO_LONG, enough)
            .await
            .unwrap()
            .unwrap();
        server.kill().await;
        for worker in running {
            let worker = tokio::time::timeout(TOO_LONG, worker)
                .await
                .unwrap()
                .unwrap();
            unanswered += u64::from(worker.unanswered.is_some());
            workers.push(worker);
        }
    }
    assert!(unanswered > 0);
    let server = place.start(&SMALL);
    let client = server.client().await;
    let epoch = epoch_of_jobs(&client).await;
    for worker in &mut workers {
        let commit = worker
            .unanswered
            .take()
            .unwrap_or_else(|| worker.next(epoch));
        let receipt = client.commit(&commit).await.unwrap();
        worker.done += 1;
        worker.generation = receipt.writes[0].generation;
        worker.compare(&client).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_an_overloaded_server_refused_runs_once_when_it_is_sent_again() {
    let place = Place::new();
    let server = place.start(&with(&["--queue-commits=1"]));
    let (client, epoch, _) = writer(&server, "w").await;
    let mut names = Vec::new();
    let mut refused = Vec::new();
    let overloaded = async {
        while refused.is_empty() {
            let burst = names.len()..names.len() + 256;
            let sent: Vec<_> = burst
                .map(|number| {
                    let (client, name) = (client.clone(), format!("i{number}"));
                    names.push(name.clone());
                    let commit = once(epoch, 1, &name);
                    tokio::spawn(async move { (name, client.commit(&commit).await) })
                })
                .collect();
            for result in sent {
                let (name, result) = result.await.unwrap();
                if let Err(error) = result {
                    let reason = error.rejection().unwrap().reason.code();
                    assert_eq!(reason, "Overloaded");
                    refused.push(name);
                }
            }
        }
    };
    tokio::time::timeout(TOO_LONG, overloaded).await.unwrap();
    for name in refused {
        let look = client.intent(&jobs(), &id(&name)).await.unwrap();
        assert_eq!(look.record, None, "{name}");
        let commit = once(epoch, 1, &name);
        let receipt = client.commit(&commit).await.unwrap();
        assert!(!receipt.replayed, "{name}");
        assert_told_again(&client, &commit, &receipt).await;
    }
    let counters = client.status().await.unwrap().counters;
    // The domain, and each step.
    assert_eq!(counters["accepted"], 1 + names.len() as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_whose_deadline_passed_runs_once_when_it_is_sent_again() {
    let place = Place::new();
    let server = place.start(&SMALL);
    let (patient, epoch, _) = writer(&server, "w").await;
    let hasty = ClientOptions {
        deadline: Duration::from_millis(200),
        ..ClientOptions::default()
    };
    let address = format!("http://{}", server.address);
    let hasty = Client::connect(&address, hasty).await.unwrap();
    for round in 0..4 {
        let commit = once(epoch, 1, &format!("i{round}"));
        let before = patient.status().await.unwrap().counters["accepted"];
        server.signal("STOP");
        let error = hasty.commit(&commit).await.unwrap_err();
        server.signal("CONT");
        assert!(error.may_have_happened(), "{error:?}");
        let receipt = patient.commit(&commit).await.unwrap();
        assert_told_again(&patient, &commit, &receipt).await;
        let after = patient.status().await.unwrap().counters["accepted"];
        assert_eq!(after, before + 1);
    }
}
