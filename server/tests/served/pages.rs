//! Pages: of one revision, readable by common clients, resumable for the same listing only.

use highwater_client::{ClientError, ScanKeys};
use highwater_core::{Guard, Key, KeyRange, Reason};
use highwater_proto::v1;
use highwater_proto::v1::highwater_client::HighwaterClient;

use crate::harness::{Served, jobs, key, options, value};

/// Writes rows of these sizes under one guard, with the key that is the guard itself.
async fn fill(served: &Served, sizes: impl IntoIterator<Item = usize>) -> Vec<Key> {
    let session = served.session(1, "a").await;
    let mut keys = vec![key("job")];
    session.put(key("job"), value("")).await.unwrap();
    for (at, size) in sizes.into_iter().enumerate() {
        let key = key(format!("job/{at:04}"));
        session
            .put(key.clone(), value(vec![7; size]))
            .await
            .unwrap();
        keys.push(key);
    }
    keys
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_of_one_revision_and_resumes_where_it_ended() {
    let served = Served::start(options()).await;
    let keys = fill(&served, (0..24).map(|at| (at % 7) * 60_000)).await;
    let client = served.client().await;
    let guard = ScanKeys::Guard(Guard::new("job").unwrap());
    for listing in [guard, ScanKeys::Range(KeyRange::all())] {
        let mut scan = client
            .scan(&jobs(), listing.clone(), None, None)
            .await
            .unwrap();
        let mut seen = Vec::new();
        let mut revisions = Vec::new();
        let mut tokens = Vec::new();
        while let Some(page) = scan.next().await.unwrap() {
            revisions.push(page.revision);
            seen.extend(page.records.into_iter().map(|(key, _)| key));
            tokens.push((seen.len(), page.token));
        }
        assert_eq!(seen, keys);
        assert!(revisions.len() > 2, "{revisions:?}");
        assert!(
            revisions
                .iter()
                .all(|revision| *revision == served.store.revision())
        );
        assert_eq!(tokens.pop().unwrap().1, None);
        for (at, token) in tokens {
            let rest = client.scan(&jobs(), listing.clone(), token, None).await;
            let mut rest = rest.unwrap();
            let first = rest.next().await.unwrap().unwrap();
            assert_eq!(first.records[0].0, keys[at]);
        }
    }
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_another_listing_is_refused() {
    let served = Served::start(options()).await;
    fill(&served, [1 << 20, 1 << 20, 1 << 20]).await;
    let client = served.client().await;
    let all = ScanKeys::Range(KeyRange::all());
    let mut scan = client.scan(&jobs(), all, None, None).await.unwrap();
    let token = scan.next().await.unwrap().unwrap().token;
    assert!(token.is_some());
    let other = ScanKeys::Range(KeyRange::of_prefix(b"job"));
    let refused = client.scan(&jobs(), other, token, None).await.unwrap_err();
    assert!(matches!(refused, ClientError::FixRequest(_)), "{refused:?}");
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_the_usual_bound_reads_every_page() {
    let served = Served::start(options()).await;
    let keys = fill(
        &served,
        [1 << 20, (1 << 20) - 1, 0, 1 << 19, 1 << 20, 1, 1 << 19],
    )
    .await;
    // The generated client bounds answers at 4 MiB unless told otherwise.
    let mut plain = HighwaterClient::connect_to(served.address).await;
    let request = v1::ScanRequest {
        domain: "jobs".into(),
        keys: Some(v1::scan_request::Keys::Prefix(b"".as_slice().into())),
        ..v1::ScanRequest::default()
    };
    let mut pages = plain.scan(request).await.unwrap().into_inner();
    let mut seen = 0;
    while let Some(page) = pages.message().await.unwrap() {
        seen += page.records.len();
    }
    assert_eq!(seen, keys.len());
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guarded_scan_fails_once_the_guard_has_a_newer_holder() {
    let served = Served::start(options()).await;
    fill(&served, [1]).await;
    let guard = Guard::new("job").unwrap();
    let old = served.session(1, "a").await;
    assert!(old.scan(guard.clone()).await.is_ok());
    served
        .session(2, "b")
        .await
        .advance(guard.clone())
        .await
        .unwrap();
    let refused = old.scan(guard).await.unwrap_err();
    let presented = served.authority(1, "a");
    assert_eq!(
        refused.rejection().unwrap().reason,
        Reason::StaleTerm { presented }
    );
    assert!(old.stopped().is_some());
    served.stop().await.unwrap();
}

/// The generated client, without any of ours.
trait Plain {
    async fn connect_to(address: std::net::SocketAddr) -> Self;
}

impl Plain for HighwaterClient<tonic::transport::Channel> {
    async fn connect_to(address: std::net::SocketAddr) -> Self {
        let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{address}"));
        Self::new(endpoint.unwrap().connect().await.unwrap())
    }
}
