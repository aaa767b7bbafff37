//! A server on a free port, and what tests need to talk to it.

use std::net::SocketAddr;
use std::time::Duration;

use highwater::{Config, Store};
use highwater_client::{Client, ClientOptions, Session};
use highwater_core::{
    Authority, Domain, DomainName, Epoch, GuardRule, Holder, Key, Policy, Sequence, Term, Value,
};
use highwater_server::{ServeError, ServeOptions, serve};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) store: Store,
    pub(crate) domain: Domain,
    stop: oneshot::Sender<()>,
    server: JoinHandle<Result<(), ServeError>>,
    _dir: TempDir,
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

pub(crate) fn options() -> ServeOptions {
    ServeOptions {
        progress_interval: Duration::from_millis(50),
        shutdown_grace: Duration::from_millis(500),
        ..ServeOptions::default()
    }
}

impl Served {
    /// A fresh store with the domain `jobs`, one lease per first component of the path.
    pub(crate) async fn start(options: ServeOptions) -> Self {
        let dir = TempDir::new().unwrap();
        let store = Store::open(dir.path(), Config::default()).unwrap();
        let rule = GuardRule::Prefix {
            delimiter: b'/',
            depth: 1,
        };
        let policy = Policy::default().with_guard(rule).unwrap();
        let domain = store
            .create_domain_async(jobs(), policy, None)
            .await
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(serve(listener, store.clone(), options, async {
            let _ = stopped.await;
        }));
        let domain = Domain::clone(&domain);
        Self {
            address,
            store,
            domain,
            stop,
            server,
            _dir: dir,
        }
    }

    pub(crate) async fn client(&self) -> Client {
        let address = format!("http://{}", self.address);
        Client::connect(&address, ClientOptions::default())
            .await
            .unwrap()
    }

    fn epoch(&self) -> Epoch {
        self.domain.epochs.current().epoch
    }

    pub(crate) fn authority(&self, sequence: u64, holder: &str) -> Authority {
        let sequence = Sequence::new(sequence).unwrap();
        Authority::new(
            Term {
                epoch: self.epoch(),
                sequence,
            },
            Holder::new(holder).unwrap(),
        )
    }

    pub(crate) async fn session(&self, sequence: u64, holder: &str) -> Session {
        self.client()
            .await
            .session(jobs(), self.authority(sequence, holder))
    }

    /// Ends the server and waits for it.
    pub(crate) async fn stop(self) -> Result<(), ServeError> {
        self.stop.send(()).unwrap();
        self.server.await.unwrap()
    }
}
