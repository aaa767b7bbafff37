//! A proxy that loses answers: the store has given its verdict, and nobody hears of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use highwater::Store;
use highwater_client::{Client, ClientOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::harness::Served;

pub(crate) struct Proxy {
    address: SocketAddr,
    plan: Arc<Plan>,
    task: JoinHandle<()>,
}

struct Plan {
    store: Store,
    server: SocketAddr,
    /// How many answers are still to be lost.
    losing: AtomicU64,
    /// How many verdicts the store had given when the last answer was lost.
    seen: AtomicU64,
}

/// How many requests the store has given a verdict on: each counts before its answer is sent.
pub(crate) fn verdicts(store: &Store) -> u64 {
    let counted = store.status().counted;
    counted.accepted + counted.replayed + counted.rejected.values().sum::<u64>()
}

impl Plan {
    /// Whether what comes from the server now may be an answer that is to be lost.
    fn strikes(&self) -> bool {
        let given = verdicts(&self.store);
        let strikes =
            self.losing.load(Ordering::SeqCst) > 0 && given > self.seen.load(Ordering::SeqCst);
        if strikes {
            self.losing.fetch_sub(1, Ordering::SeqCst);
            self.seen.store(given, Ordering::SeqCst);
        }
        strikes
    }

    /// Passes bytes on both ways until an answer is lost with its connection.
    async fn pass(&self, mut client: TcpStream) {
        let mut server = TcpStream::connect(self.server).await.unwrap();
        let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
            (client.split(), server.split());
        let down = async {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
                if self.strikes() || to_client.write_all(&buffer[..count]).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            _ = copy(&mut from_client, &mut to_server) => {}
            () = down => {}
        }
    }
}

impl Proxy {
    pub(crate) async fn start(served: &Served) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let plan = Arc::new(Plan {
            store: served.store.clone(),
            server: served.address,
            losing: AtomicU64::new(0),
            seen: AtomicU64::new(0),
        });
        let own = Arc::clone(&plan);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let plan = Arc::clone(&own);
                connections.spawn(async move { plan.pass(client).await });
            }
        });
        Self {
            address,
            plan,
            task,
        }
    }

    pub(crate) async fn client(&self, options: ClientOptions) -> Client {
        let address = format!("http://{}", self.address);
        Client::connect(&address, options).await.unwrap()
    }

    /// Loses the answers to the next requests that the store gives a verdict on.
    pub(crate) fn lose(&self, answers: u64) {
        let given = verdicts(&self.plan.store);
        self.plan.seen.store(given, Ordering::SeqCst);
        self.plan.losing.store(answers, Ordering::SeqCst);
    }

    /// How many answers are still to be lost.
    pub(crate) fn left(&self) -> u64 {
        self.plan.losing.load(Ordering::SeqCst)
    }

    /// Loses one answer; from then on nobody can connect.
    pub(crate) fn lose_and_close(self) {
        self.lose(1);
        tokio::spawn(async move {
            while self.left() > 0 {
                tokio::task::yield_now().await;
            }
            self.task.abort();
        });
    }
}
