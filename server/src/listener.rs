//! Accepts connections, for as long as the server serves.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep};
use tokio_stream::Stream;

use crate::connection::Connection;
use crate::options::ServeOptions;
use crate::shutdown::Ending;

/// How long accepting rests after an error, such as no file descriptor being left.
const REST_AFTER_ERROR: Duration = Duration::from_millis(50);

/// The connections of a listening socket. It never ends by itself, whatever `accept` says.
pub(crate) struct Listener {
    socket: TcpListener,
    free: Arc<Semaphore>,
    handshake_timeout: Duration,
    ending: Ending,
    rest: Option<Pin<Box<Sleep>>>,
}

impl Listener {
    /// Accepts on this socket, within the options' bounds.
    pub(crate) fn new(socket: TcpListener, options: &ServeOptions, ending: Ending) -> Self {
        Self {
            socket,
            free: Arc::new(Semaphore::new(options.connections_max)),
            handshake_timeout: options.handshake_timeout,
            ending,
            rest: None,
        }
    }

    fn is_resting(&mut self, context: &mut Context<'_>) -> bool {
        let Some(rest) = &mut self.rest else {
            return false;
        };
        let is_over = rest.as_mut().poll(context).is_ready();
        if is_over {
            self.rest = None;
        }
        !is_over
    }
}

impl Stream for Listener {
    type Item = Result<Connection, Infallible>;

    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Connection, Infallible>>> {
        let this = self.get_mut();
        loop {
            if this.is_resting(context) {
                return Poll::Pending;
            }
            match this.socket.poll_accept(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    this.rest = Some(Box::pin(sleep(REST_AFTER_ERROR)));
                }
                Poll::Ready(Ok((stream, peer))) => {
                    let Ok(counted) = Arc::clone(&this.free).try_acquire_owned() else {
                        tracing::warn!(%peer, "too many connections; this one is closed");
                        continue;
                    };
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%peer, %error, "a connection ended at once");
                        continue;
                    }
                    let (timeout, ending) = (this.handshake_timeout, this.ending.clone());
                    let connection = Connection::new(stream, peer, timeout, ending, counted);
                    return Poll::Ready(Some(Ok(connection)));
                }
            }
        }
    }
}
