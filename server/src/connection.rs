//! One connection: counted, given a time to begin, and closable from outside.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};
use tonic::transport::server::{Connected, TcpConnectInfo};

use crate::shutdown::Ending;

/// What an HTTP/2 client says first; until then a connection is nothing but a socket.
const PREFACE_BYTES: usize = 24;

/// A connection. It ends with an error when it says too little for too long at its beginning, and
/// when the server closes it.
pub(crate) struct Connection {
    stream: TcpStream,
    peer: Option<SocketAddr>,
    cut_off: Pin<Box<dyn Future<Output = ()> + Send>>,
    handshake: Option<Handshake>,
    _counted: OwnedSemaphorePermit,
}

struct Handshake {
    missing: usize,
    deadline: Pin<Box<Sleep>>,
}

impl Connection {
    /// Takes charge of an accepted socket. `counted` is given back when the connection is gone.
    pub(crate) fn new(
        stream: TcpStream,
        peer: SocketAddr,
        handshake_timeout: Duration,
        ending: Ending,
        counted: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            stream,
            peer: Some(peer),
            cut_off: Box::pin(ending.cut_off()),
            handshake: Some(Handshake {
                missing: PREFACE_BYTES,
                deadline: Box::pin(sleep(handshake_timeout)),
            }),
            _counted: counted,
        }
    }

    fn check_cut_off(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.cut_off.as_mut().poll(context) {
            Poll::Ready(()) => {
                // A future that is ready isn't polled again.
                self.cut_off = Box::pin(std::future::ready(()));
                Err(io::Error::new(
                    io::ErrorKind::ConnectionAborted,
                    "the server ends",
                ))
            }
            Poll::Pending => Ok(()),
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        TcpConnectInfo {
            local_addr: self.stream.local_addr().ok(),
            remote_addr: self.peer,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.check_cut_off(context)?;
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        let Some(handshake) = &mut this.handshake else {
            return read;
        };
        let said = buffer.filled().len().saturating_sub(before);
        handshake.missing = handshake.missing.saturating_sub(said);
        if handshake.missing == 0 {
            this.handshake = None;
        } else if read.is_pending() && handshake.deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
