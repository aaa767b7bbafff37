//! Runs a server from its listening socket to its last connection.

use std::sync::Arc;

use highwater::Store;
use highwater_proto::v1::highwater_server::HighwaterServer;
use highwater_proto::{FILE_DESCRIPTOR_SET, MESSAGE_BYTES_MAX};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tonic::transport::Server;

use crate::error::ServeError;
use crate::health;
use crate::listener::Listener;
use crate::options::{COMMON_MESSAGE_BYTES, ServeOptions};
use crate::service::Service;
use crate::shutdown::Shutdown;
use crate::unread::Attentive;

/// Bytes that one call may send ahead of being read.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// Bytes that all calls of a connection may send ahead of being read.
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// Largest frame that is accepted, in bytes.
const FRAME_BYTES_MAX: u32 = 64 << 10;
/// Calls that a peer reset before they were looked at; beyond that its connection is closed.
const PENDING_RESETS_MAX: usize = 20;
/// Resets that the server itself sent because of a peer's errors; beyond that its connection is
/// closed.
const LOCAL_RESETS_MAX: usize = 256;
/// Longest answer with one message, in bytes: the largest value with its record.
const ANSWER_BYTES_MAX: usize = 17 << 20;

const _: () = assert!(ANSWER_BYTES_MAX > highwater_core::limits::VALUE_BYTES_MAX + (256 << 10));
const _: () = assert!(ANSWER_BYTES_MAX > COMMON_MESSAGE_BYTES);

/// Serves a store on a listening socket until the shutdown future ends.
///
/// Before: the store is open, so recovery is done; the socket listens. After, also after an error:
/// the socket is closed and no connection of it is left; the store is still open, and whatever was
/// handed to it goes on. The caller closes it.
///
/// A shutdown stops accepting, reports `NOT_SERVING`, lets calls with one answer finish, answers
/// what commit streams have sent so far, ends watches and scans with `UNAVAILABLE`, and after
/// [`ServeOptions::shutdown_grace`] closes what is still open, idle connections included.
///
/// Connections are bounded by [`ServeOptions::connections_max`], or by what the process's limit of
/// file descriptors has room for ([`ServeOptions::within_descriptors`]) where that is less.
///
/// Errors of `accept` (as when no file descriptor is left) never end the server.
///
/// # Errors
///
/// [`ServeError`] when an option is out of its bounds or the transport gives up.
pub async fn serve(
    listener: TcpListener,
    store: Store,
    options: ServeOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    options.validate()?;
    let options = options.within_descriptors()?;
    let grace = options.shutdown_grace;
    let (ends, ending) = Shutdown::new();
    let ends = Arc::new(ends);
    let (reporter, health_service) = tonic_health::server::health_reporter();
    health::tell(&reporter, tonic_health::ServingStatus::NotServing).await;
    let follower = health::follow(store.clone(), reporter, options.clone(), ending.clone());
    let follower = tokio::spawn(follower);
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(ServeError::Description)?;
    let service = HighwaterServer::new(Service::new(store, &options, ending.clone()))
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(ANSWER_BYTES_MAX);
    let service = Attentive(service);
    let begin = {
        let ends = Arc::clone(&ends);
        async move {
            shutdown.await;
            ends.begin();
        }
    };
    let incoming = Listener::new(listener, &options, ending.clone());
    let server = transport(&options)
        .add_service(health_service)
        .add_service(reflection)
        .add_service(service)
        .serve_with_incoming_shutdown(incoming, begin);
    let cut_off = async {
        let mut ending = ending;
        ending.begun().await;
        if timeout(grace, std::future::pending::<()>()).await.is_err() {
            tracing::warn!("the time for an orderly end is over; connections are closed");
            ends.cut_off();
        }
        std::future::pending::<()>().await;
    };
    let served = tokio::select! {
        served = server => served.map_err(ServeError::Transport),
        () = cut_off => Ok(()),
    };
    ends.begin();
    // It ends by itself now; an error would be its panic, which is reported already.
    let _ = follower.await;
    served
}

/// A transport with every bound that it offers.
fn transport(options: &ServeOptions) -> Server {
    Server::builder()
        .accept_http1(false)
        .max_concurrent_streams(options.streams_per_connection_max)
        .http2_max_header_list_size(options.header_bytes_max)
        .http2_max_pending_accept_reset_streams(Some(PENDING_RESETS_MAX))
        .http2_max_local_error_reset_streams(Some(LOCAL_RESETS_MAX))
        .http2_keepalive_interval(Some(options.keepalive_interval))
        .http2_keepalive_timeout(Some(options.keepalive_timeout))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES_MAX)
}
