//! Fenced durable commits over gRPC, unary and streaming, each beside the bare limit. Server and
//! client share the machine, each with a runtime of its own, over one connection.

use std::collections::VecDeque;
use std::time::Instant;

use highwater::{Commit, Config, DomainName, Policy, Receipt, Store};
use highwater_benches::{
    Case, Failure, On, Target, Times, Work, compare, measure_for, side_by_side,
};
use highwater_client::{Client, ClientOptions, Session};
use highwater_core::Authority;
use highwater_server::{ServeOptions, serve};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

fn main() -> Result<(), Failure> {
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
    let mut work = Work::load(&store, jobs.clone(), epoch)?;
    let authority = Authority::parse(&format!("{epoch}/42@writer"))?;
    let session = Served(client.session(jobs, authority));
    let cases = [
        Case {
            name: "unary",
            run: Box::new(|count, work| side_by_side(On::Tasks(&clients), &session, count, work)),
        },
        Case {
            name: "streaming",
            run: Box::new(|count, work| streaming(&clients, &session.0, count, work)),
        },
    ];
    let title = "fenced CAS writes over gRPC, durable before the answer";
    compare(title, dir.path(), &mut work, &cases)?;
    drop(cases);
    drop((session, client, clients));
    drop(stop);
    server.block_on(served)??;
    store.close()?;
    Ok(())
}

/// A store behind a server, with one call for each commit.
#[derive(Clone)]
struct Served(Session);

impl Target for Served {
    async fn commit(&self, commit: Commit) -> Result<Receipt, Failure> {
        Ok(self.0.commit(commit).await?)
    }
}

/// One stream that always has so many commits in flight, each of another writer.
fn streaming(runtime: &Runtime, session: &Session, in_flight: usize, work: &mut Work) -> Times {
    let mut writers = work.share(in_flight);
    let times = runtime.block_on(async {
        let (mut commits, mut verdicts) = session.pipeline().await?;
        let end = Instant::now() + measure_for();
        // Verdicts come in order, so the one that is due belongs to the oldest commit.
        let mut under_way = VecDeque::new();
        for (writer, part) in writers.iter_mut().enumerate() {
            let (index, commit) = part.commit()?;
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
            let (index, commit) = part.commit()?;
            under_way.push_back((writer, index, Instant::now()));
            sender.send(commit).await?;
        }
        Ok::<_, Failure>(times)
    })?;
    work.give_back(writers);
    Ok(times)
}
