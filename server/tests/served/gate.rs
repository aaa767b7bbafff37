//! A way to the server that can be closed: connections are cut, and what is said is held back.

use std::net::SocketAddr;

use highwater_client::{Client, ClientOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::harness::Served;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Mode {
    /// Everything passes.
    Open,
    /// What clients say is held back, on connections that stay.
    Held,
    /// What the server answers is held back.
    Deaf,
    /// There are no connections.
    Cut,
}

pub(crate) struct Gate {
    address: SocketAddr,
    mode: watch::Sender<Mode>,
}

async fn pass(mut client: TcpStream, server: SocketAddr, mut mode: watch::Receiver<Mode>) {
    let mut to = TcpStream::connect(server).await.unwrap();
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = to.split();
    let mut held = mode.clone();
    let up = async {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            let open = held.wait_for(|mode| *mode != Mode::Held).await.is_ok();
            if !open || to_server.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    };
    let mut deaf = mode.clone();
    let down = async {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
            let open = deaf.wait_for(|mode| *mode != Mode::Deaf).await.is_ok();
            if !open || to_client.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
        _ = mode.wait_for(|mode| *mode == Mode::Cut) => {}
    }
}

impl Gate {
    pub(crate) async fn start(served: &Served) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mode, seen) = watch::channel(Mode::Open);
        let server = served.address;
        tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                if *seen.borrow() != Mode::Cut {
                    connections.spawn(pass(client, server, seen.clone()));
                }
            }
        });
        Self { address, mode }
    }

    pub(crate) async fn client(&self) -> Client {
        let address = format!("http://{}", self.address);
        let options = ClientOptions::default();
        Client::connect(&address, options).await.unwrap()
    }

    pub(crate) fn open(&self) {
        self.mode.send_replace(Mode::Open);
    }

    /// Holds back what clients say from now on.
    pub(crate) fn hold(&self) {
        self.mode.send_replace(Mode::Held);
    }

    /// Holds back what the server answers from now on.
    pub(crate) fn deafen(&self) {
        self.mode.send_replace(Mode::Deaf);
    }

    /// Ends all connections, and lets nobody connect.
    pub(crate) fn cut(&self) {
        self.mode.send_replace(Mode::Cut);
    }
}
