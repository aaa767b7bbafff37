//! Bounds: values, messages, pages, calls at once, deadlines.

use bytes::Bytes;
use highwater_core::{Commit, ExpectedDestination, Incarnation, IncarnationMark};
use highwater_proto::convert::{FromWire, ToWire};
use highwater_proto::v1;
use highwater_proto::v1::scan_request::Keys;
use tonic::{Code, Request, Status};

use super::{Raw, domain, is_malformed, request, told};
use crate::support::{Place, authority, by_job, jobs, key, value};

const BIG: [&str; 3] = [
    "--segment-bytes=40MiB",
    "--log-bytes=80MiB",
    "--value-bytes=16MiB",
];

fn get(name: &'static str) -> v1::GetRequest {
    v1::GetRequest {
        domain: "jobs".into(),
        key: name.into(),
        ..v1::GetRequest::default()
    }
}

fn all(page_token: Bytes) -> v1::ScanRequest {
    v1::ScanRequest {
        domain: "jobs".into(),
        keys: Some(Keys::Prefix(Bytes::new())),
        page_token,
        ..v1::ScanRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_taken_up_to_its_bound_and_read_back_after_a_restart() {
    let place = Place::new();
    let server = place.start(&BIG);
    let epoch = domain(&server, "jobs", &by_job()).await;
    let client = server.client().await;
    let put = |bytes: usize| {
        Commit::new(jobs())
            .under(authority(epoch, 1, "a"))
            .put(key("k"), value(vec![7; bytes]))
    };
    // A commit counts its keys too.
    let most = (16 << 20) - 1;
    for bytes in [most - 1, most] {
        client.commit(&put(bytes)).await.unwrap();
        let found = client.get(&jobs(), &key("k"), None).await.unwrap();
        assert_eq!(found.record.unwrap().value.as_bytes().len(), bytes);
    }
    let mut raw = server.raw().await.max_encoding_message_size(usize::MAX);
    let mut sent = request(&put(most));
    for more in [1, 2, most] {
        let mutation = &mut sent.commit.as_mut().unwrap().mutations[0];
        let Some(v1::mutation::Kind::Put(put)) = &mut mutation.kind else {
            panic!("{mutation:?}")
        };
        put.value = vec![7; most + more].into();
        let refused = raw.commit(sent.clone()).await.unwrap_err();
        if more < most {
            assert_eq!(told(&refused), (Code::InvalidArgument, "Malformed".into()));
        } else {
            // Longer than any message may be: the transport itself refuses it.
            let expected = (Code::ResourceExhausted, "NotExecuted".into());
            assert_eq!(told(&refused), expected);
        }
    }
    server.kill().await;
    let server = place.start(&BIG);
    let found = server
        .client()
        .await
        .get(&jobs(), &key("k"), None)
        .await
        .unwrap();
    assert_eq!(found.record.unwrap().value, value(vec![7; most]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_client_reads_every_page_whatever_its_size() {
    let place = Place::new();
    // The largest page there is, and two records of which the second just fits into it or doesn't.
    let server = place.start(&[
        "--segment-bytes=8MiB",
        "--log-bytes=32MiB",
        "--value-bytes=4MiB",
        "--page-bytes=4186112",
    ]);
    let epoch = domain(&server, "jobs", &by_job()).await;
    let client = server.client().await;
    let session = client.session(jobs(), authority(epoch, 1, "a"));
    let first = 1_900_000;
    session.put(key("k0"), value(vec![7; first])).await.unwrap();
    let mut raw: Raw = server.raw().await;
    let around = 4_186_112 - 8_192 - first - 500;
    let mut pages_seen = std::collections::BTreeSet::new();
    for more in (0..600).step_by(13) {
        let second = value(vec![7; around + more]);
        session.put(key("k1"), second).await.unwrap();
        let mut pages = raw.scan(all(Bytes::new())).await.unwrap().into_inner();
        let mut sizes = Vec::new();
        while let Some(page) = pages.message().await.unwrap() {
            sizes.push(page.records.len());
        }
        assert_eq!(sizes.iter().sum::<usize>(), 2, "{more}");
        pages_seen.insert(sizes.len());
    }
    // Both sides of the bound were tried.
    assert_eq!(pages_seen.into_iter().collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_goes_on_with_its_own_listing_only() {
    let place = Place::new();
    let server = place.start(&["--segment-bytes=1MiB", "--log-bytes=4MiB"]);
    let epoch = domain(&server, "jobs", &by_job()).await;
    let session = server
        .client()
        .await
        .session(jobs(), authority(epoch, 1, "a"));
    for number in 0..6 {
        session
            .put(key(format!("k/{number}")), value(""))
            .await
            .unwrap();
    }
    domain(&server, "other", &by_job()).await;
    let mut raw = server.raw().await;
    let first = v1::ScanRequest {
        page_records: 2,
        pages: 1,
        ..all(Bytes::new())
    };
    let mut pages = raw.scan(first).await.unwrap().into_inner();
    let token = pages.message().await.unwrap().unwrap().page_token;
    let mut rest = raw.scan(all(token.clone())).await.unwrap().into_inner();
    assert_eq!(rest.message().await.unwrap().unwrap().records.len(), 4);
    let prefix = Keys::Prefix(b"k".as_slice().into());
    let guard = Keys::Guard(b"k".as_slice().into());
    let foreign = [
        v1::ScanRequest {
            keys: Some(prefix),
            ..all(token.clone())
        },
        v1::ScanRequest {
            keys: Some(guard),
            ..all(token.clone())
        },
        v1::ScanRequest {
            domain: "other".into(),
            ..all(token.clone())
        },
        all(token.slice(1..)),
        all(b"made up".as_slice().into()),
    ];
    for scan in foreign {
        assert!(is_malformed(raw.scan(scan).await));
    }
    // The same listing of another store.
    let elsewhere = Place::new();
    let other = elsewhere.start(&["--segment-bytes=1MiB", "--log-bytes=4MiB"]);
    domain(&other, "jobs", &by_job()).await;
    let refused = other.raw().await.scan(all(token)).await.unwrap_err();
    assert_eq!(
        told(&refused),
        (Code::FailedPrecondition, "WrongDestination".into())
    );
}

fn is_refused_unseen<T>(result: Result<T, Status>, code: Code) -> bool {
    result.is_err_and(|status| told(&status) == (code, "NotExecuted".into()))
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_too_many_is_refused_until_another_ends() {
    let place = Place::new();
    let bounds = [
        "--commit-streams-max=1",
        "--watches-max=1",
        "--scans-max=1",
        "--segment-bytes=1MiB",
        "--log-bytes=4MiB",
    ];
    let server = place.start(&bounds);
    let epoch = domain(&server, "jobs", &by_job()).await;
    let session = server
        .client()
        .await
        .session(jobs(), authority(epoch, 1, "a"));
    for number in 0..8 {
        session
            .put(key(format!("k{number}")), value(vec![7; 900_000]))
            .await
            .unwrap();
    }
    let mut raw = server.raw().await;
    let watch = || v1::WatchRequest {
        domain: "jobs".into(),
        keys: Some(v1::watch_request::Keys::Prefix(Bytes::new())),
        ..v1::WatchRequest::default()
    };
    let full = Code::ResourceExhausted;
    let watching = raw.watch(watch()).await.unwrap();
    assert!(is_refused_unseen(raw.watch(watch()).await, full));
    let scanning = raw.scan(all(Bytes::new())).await.unwrap();
    assert!(is_refused_unseen(raw.scan(all(Bytes::new())).await, full));
    let take = v1::TakeOverRequest {
        domain: "jobs".into(),
        guard: b"k0".as_slice().into(),
        by: Some(v1::take_over_request::By::Authority(
            authority(epoch, 2, "b").to_wire(),
        )),
        ..v1::TakeOverRequest::default()
    };
    // It is refused before it raises a fence.
    assert!(is_refused_unseen(raw.take_over(take.clone()).await, full));
    session.get(&key("k0")).await.unwrap();
    let streaming = raw.commit_stream(tokio_stream::pending()).await.unwrap();
    assert!(is_refused_unseen(
        raw.commit_stream(tokio_stream::pending()).await,
        full
    ));
    drop((watching, scanning, streaming));
    let places = async {
        while raw.watch(watch()).await.is_err() || raw.take_over(take.clone()).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::support::TOO_LONG, places)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_is_over_and_a_destination_that_is_another_do_nothing() {
    let place = Place::new();
    let server = place.start(&["--segment-bytes=1MiB", "--log-bytes=4MiB"]);
    let epoch = domain(&server, "jobs", &by_job()).await;
    let mut raw = server.raw().await;
    let commit = Commit::new(jobs())
        .under(authority(epoch, 1, "a"))
        .put(key("k"), value(""));
    let with = |text: &'static str| {
        let mut late = Request::new(request(&commit));
        late.metadata_mut()
            .insert("grpc-timeout", text.parse().unwrap());
        late
    };
    let late = raw.commit(with("0n")).await.unwrap_err();
    assert!(
        matches!(late.code(), Code::DeadlineExceeded | Code::Cancelled),
        "{late:?}"
    );
    assert!(is_refused_unseen(
        raw.commit(with("soon")).await,
        Code::InvalidArgument
    ));
    let own = raw
        .status(v1::StatusRequest {})
        .await
        .unwrap()
        .into_inner()
        .destination;
    let own = ExpectedDestination::from_wire(own.unwrap()).unwrap();
    let mark = IncarnationMark::new(!own.incarnation.mark().get());
    let other = ExpectedDestination {
        incarnation: Incarnation::new(own.incarnation.number(), mark),
        ..own
    };
    let other = Some(other.to_wire());
    let named = Keys::Prefix(Bytes::new());
    let stop =
        |status: Status| told(&status) == (Code::FailedPrecondition, "WrongDestination".into());
    let asked = v1::GetRequest {
        destination: other.clone(),
        ..get("k")
    };
    assert!(raw.get(asked).await.is_err_and(stop));
    let scan = v1::ScanRequest {
        destination: other.clone(),
        keys: Some(named),
        ..all(Bytes::new())
    };
    assert!(raw.scan(scan).await.is_err_and(stop));
    let watch = v1::WatchRequest {
        destination: other.clone(),
        domain: "jobs".into(),
        keys: Some(v1::watch_request::Keys::Prefix(Bytes::new())),
        ..v1::WatchRequest::default()
    };
    assert!(raw.watch(watch).await.is_err_and(stop));
    let list = v1::ListDomainsRequest { destination: other };
    assert!(raw.list_domains(list).await.is_err_and(stop));
    assert!(
        raw.get(get("k"))
            .await
            .unwrap()
            .into_inner()
            .record
            .is_none()
    );
}
