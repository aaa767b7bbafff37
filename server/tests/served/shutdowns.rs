//! Health, bounds, and an end that comes whatever is still open.

use std::time::Duration;

use highwater_client::{ClientError, NotSent};
use highwater_core::KeyRange;
use highwater_server::ServeOptions;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::harness::{Served, jobs, options};

/// Far more than anything here takes; a test that needs it has failed.
const TOO_LONG: Duration = Duration::from_secs(30);

async fn health(served: &Served, service: &str) -> ServingStatus {
    let address = format!("http://{}", served.address);
    let endpoint = tonic::transport::Endpoint::from_shared(address).unwrap();
    let mut client = HealthClient::new(endpoint.connect().await.unwrap());
    let request = HealthCheckRequest {
        service: service.into(),
    };
    client.check(request).await.unwrap().into_inner().status()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_takes_effects_is_reported_as_serving() {
    let served = Served::start(options()).await;
    for service in ["", "highwater.v1.Highwater"] {
        let serving = async {
            while health(&served, service).await != ServingStatus::Serving {
                tokio::task::yield_now().await;
            }
        };
        timeout(TOO_LONG, serving).await.unwrap();
    }
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_ends_with_a_watch_and_idle_connections_open() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    let mut watch = client
        .watch(&jobs(), &KeyRange::all(), false, None)
        .await
        .unwrap();
    let mut idle = TcpStream::connect(served.address).await.unwrap();
    let ended = tokio::spawn(async move {
        loop {
            if let Err(error) = watch.next().await {
                return error;
            }
        }
    });
    timeout(TOO_LONG, served.stop()).await.unwrap().unwrap();
    let error = timeout(TOO_LONG, ended).await.unwrap().unwrap();
    assert!(
        matches!(error, ClientError::NotSent(NotSent::Refused(_))),
        "{error:?}"
    );
    // The idle connection is closed too: its end, or its reset, is seen.
    let mut byte = [0; 64];
    let closed = async { while idle.read(&mut byte).await.is_ok_and(|read| read > 0) {} };
    timeout(TOO_LONG, closed).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_says_nothing_is_closed_and_others_are_served() {
    let options = ServeOptions {
        handshake_timeout: Duration::from_millis(50),
        ..options()
    };
    let served = Served::start(options).await;
    let mut idle = TcpStream::connect(served.address).await.unwrap();
    let mut byte = [0; 64];
    let closed = async { while idle.read(&mut byte).await.is_ok_and(|read| read > 0) {} };
    timeout(TOO_LONG, closed).await.unwrap();
    served.client().await.status().await.unwrap();
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_watch_more_than_allowed_is_refused_and_its_place_comes_back() {
    let served = Served::start(ServeOptions {
        watches_max: 1,
        ..options()
    })
    .await;
    let client = served.client().await;
    let (name, all) = (jobs(), KeyRange::all());
    let open = client.watch(&name, &all, false, None).await.unwrap();
    let refused = client.watch(&name, &all, false, None).await.unwrap_err();
    assert!(
        matches!(refused, ClientError::NotSent(NotSent::Refused(_))),
        "{refused:?}"
    );
    drop(open);
    let again = async {
        while client.watch(&name, &all, false, None).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(TOO_LONG, again).await.unwrap();
    served.stop().await.unwrap();
}
