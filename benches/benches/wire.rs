//! Fenced durable commits over gRPC, unary and streaming, each beside the bare limit. Server and
//! client share the machine, each with a runtime of its own, over one connection.

use std::error::Error;
use std::time::{Duration, Instant};

use highwater::{Config, DomainName, Policy, Store};
use highwater_benches::{Report, Sample, Work, bare_limit, measure_for, rounds, writers};
use highwater_client::{Client, ClientOptions, Session};
use highwater_core::{Authority, Epoch};
use highwater_server::{ServeOptions, serve};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let dir = tempfile::tempdir_in(".")?;
    let store = Store::open(dir.path().join("store"), Config::default())?;
    let jobs = DomainName::new("jobs")?;
    let domain = store.create_domain(jobs.clone(), Policy::default(), None)?;
    let epoch = domain.epochs.current().epoch;
    let server = Builder::new_multi_thread().enable_all().build()?;
    let listener = server.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = format!("http://{}", listener.local_addr()?);
    let (stop, stopped) = oneshot::channel::<()>();
    let served = server.spawn(serve(
        listener,
        store.clone(),
        ServeOptions::default(),
        async {
            // Either word or silence ends it.
            let _ = stopped.await;
        },
    ));
    let clients = Builder::new_multi_thread().enable_all().build()?;
    let client = clients.block_on(Client::connect(&address, ClientOptions::default()))?;
    let loaded = Work::load(&store, jobs.clone(), epoch);
    let mut work = loaded.map_err(|error| error.to_string())?;
    let bench = Bench {
        clients,
        client,
        jobs,
        epoch,
    };
    let report = Report::begin("fenced CAS writes over gRPC, durable before the answer");
    for in_flight in writers(&[1, 8, 64, 256]) {
        let (mut unary, mut streaming) = (Vec::new(), Vec::new());
        for _ in 0..rounds() {
            let limit = bare_limit(dir.path(), in_flight, measure_for())?;
            unary.push(Sample::take(limit, || bench.unary(in_flight, &mut work))?);
            let limit = bare_limit(dir.path(), in_flight, measure_for())?;
            streaming.push(Sample::take(limit, || {
                bench.streaming(in_flight, &mut work)
            })?);
        }
        report.line(&format!("{in_flight} unary"), &unary);
        report.line(&format!("{in_flight} streaming"), &streaming);
    }
    drop(bench);
    drop(stop);
    server.block_on(served)??;
    store.close()?;
    Ok(())
}

/// The client's side of the measurement.
struct Bench {
    clients: Runtime,
    client: Client,
    jobs: DomainName,
    epoch: Epoch,
}

impl Bench {
    fn session(&self) -> Result<Session> {
        let authority = Authority::parse(&format!("{}/42@writer", self.epoch))?;
        Ok(self.client.session(self.jobs.clone(), authority))
    }

    /// One task for each writer, each with one call in flight.
    fn unary(&self, in_flight: usize, work: &mut Work) -> Result<Vec<Duration>> {
        let session = self.session()?;
        let end = Instant::now() + measure_for();
        let tasks: Vec<_> = work
            .share(in_flight)
            .into_iter()
            .map(|mut writer| {
                let session = session.clone();
                self.clients.spawn(async move {
                    let mut times = Vec::new();
                    while Instant::now() < end {
                        let (index, commit) = writer.commit().map_err(|e| e.to_string())?;
                        let begun = Instant::now();
                        let receipt = session.commit(commit).await?;
                        times.push(begun.elapsed());
                        writer.note(index, &receipt);
                    }
                    Ok::<_, Box<dyn Error + Send + Sync>>((times, writer))
                })
            })
            .collect();
        let mut all = Vec::new();
        for task in tasks {
            let (times, writer) = self.clients.block_on(task)??;
            all.extend(times);
            work.give_back([writer]);
        }
        Ok(all)
    }

    /// One stream that always has so many commits in flight, each of another writer.
    fn streaming(&self, in_flight: usize, work: &mut Work) -> Result<Vec<Duration>> {
        let session = self.session()?;
        let mut writers = work.share(in_flight);
        let times = self.clients.block_on(async {
            let (mut commits, mut verdicts) = session.pipeline().await?;
            let end = Instant::now() + measure_for();
            // Verdicts come in order, so the one that is due belongs to the oldest commit.
            let mut under_way = std::collections::VecDeque::new();
            for (writer, part) in writers.iter_mut().enumerate() {
                let (index, commit) = part.commit().map_err(|e| e.to_string())?;
                under_way.push_back((writer, index, Instant::now()));
                commits.send(commit).await?;
            }
            let mut commits = Some(commits);
            let mut times = Vec::new();
            while let Some(verdict) = verdicts.next().await {
                let receipt = verdict.result?;
                let (writer, index, begun) = under_way.pop_front().ok_or("a verdict too many")?;
                times.push(begun.elapsed());
                let part = writers.get_mut(writer).ok_or("an unknown writer")?;
                part.note(index, &receipt);
                if Instant::now() >= end {
                    commits = None;
                }
                let Some(sender) = &mut commits else { continue };
                let (index, commit) = part.commit().map_err(|e| e.to_string())?;
                under_way.push_back((writer, index, Instant::now()));
                sender.send(commit).await?;
            }
            Ok::<_, Box<dyn Error + Send + Sync>>(times)
        })?;
        work.give_back(writers);
        Ok(times)
    }
}
