//! Keys at the edges: prefixes of the highest bytes, and everything that may be empty.

use bytes::Bytes;
use highwater_core::{Commit, GuardRule, Policy};
use highwater_proto::convert::ToWire;
use highwater_proto::v1;
use highwater_proto::v1::get_fence_request::Target;
use highwater_proto::v1::scan_request::Keys;

use super::{Raw, domain, is_malformed, request};
use crate::support::{Place, SMALL, authority, by_job, jobs, key, value};

/// Every key of up to three of these bytes, in order.
fn every_key() -> Vec<Vec<u8>> {
    let letters = [0, 1, b'a', b'b', 0xfe, 0xff];
    let mut keys = vec![Vec::new()];
    for length in 0..3 {
        let longest: Vec<_> = keys
            .iter()
            .filter(|key: &&Vec<u8>| key.len() == length)
            .cloned()
            .collect();
        for start in longest {
            keys.extend(
                letters
                    .iter()
                    .map(|letter| [start.as_slice(), &[*letter]].concat()),
            );
        }
    }
    keys.sort();
    keys
}

async fn scan(raw: &mut Raw, keys: Keys, page_records: u32) -> Result<Vec<Vec<u8>>, tonic::Status> {
    let scan = v1::ScanRequest {
        domain: "jobs".into(),
        keys: Some(keys),
        page_records,
        ..v1::ScanRequest::default()
    };
    let mut pages = raw.scan(scan).await?.into_inner();
    let mut found = Vec::new();
    while let Some(page) = pages.message().await? {
        found.extend(page.records.into_iter().map(|record| record.key.to_vec()));
    }
    Ok(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_prefix_gives_what_a_sorted_list_gives() {
    let place = Place::new();
    let server = place.start(&SMALL);
    let policy = Policy::default().with_guard(GuardRule::Domain).unwrap();
    let epoch = domain(&server, "jobs", &policy).await;
    let mut raw = server.raw().await;
    let all = every_key();
    assert_eq!(all.len(), 1 + 6 + 36 + 216);
    let commit = Commit::new(jobs()).under(authority(epoch, 1, "a"));
    let commit = all
        .iter()
        .skip(1)
        .fold(commit, |commit, name| commit.put(key(name), value(name)));
    raw.commit(request(&commit)).await.unwrap();
    let longer = [vec![0xff; 4], vec![0xff; 1_024]];
    for (number, prefix) in all.iter().chain(&longer).enumerate() {
        let wanted: Vec<_> = all
            .iter()
            .skip(1)
            .filter(|key| key.starts_with(prefix))
            .cloned()
            .collect();
        let pages = u32::try_from(number % 3 * 7).unwrap();
        let found = scan(&mut raw, Keys::Prefix(prefix.clone().into()), pages)
            .await
            .unwrap();
        assert_eq!(found, wanted, "{prefix:?}");
    }
    for pair in all.windows(2) {
        let [start, end] = [0, 1].map(|at| Bytes::from(pair[at].clone()));
        let wanted: Vec<_> = all
            .iter()
            .skip(1)
            .filter(|key| key[..] >= start[..] && key[..] < end[..])
            .cloned()
            .collect();
        let range = v1::KeyRange {
            start,
            end: Some(end),
        };
        assert_eq!(scan(&mut raw, Keys::Range(range), 0).await.unwrap(), wanted);
    }
}

fn mutation(kind: v1::mutation::Kind) -> v1::Mutation {
    v1::Mutation { kind: Some(kind) }
}

/// Everything that names a key, with an empty one.
fn with_empty_key(good: &v1::Commit) -> Vec<v1::Commit> {
    use v1::condition::Kind as If;
    use v1::mutation::Kind as Do;
    let mutations = [
        Do::Put(v1::Put::default()),
        Do::Delete(v1::Delete::default()),
        Do::SetMetadata(v1::SetMetadata::default()),
    ];
    let generation = || v1::GenerationCondition {
        key: Bytes::new(),
        generation: Some(0),
    };
    let metageneration = || v1::MetagenerationCondition {
        key: Bytes::new(),
        metageneration: Some(0),
    };
    let unchanged = v1::KeyUnchangedCondition {
        key: Bytes::new(),
        revision: 1 << 48,
    };
    let digest = v1::DigestCondition {
        key: Bytes::new(),
        digest: vec![0; 32].into(),
    };
    let conditions = [
        If::GenerationIs(generation()),
        If::GenerationIsNot(generation()),
        If::MetagenerationIs(metageneration()),
        If::MetagenerationIsNot(metageneration()),
        If::ValueDigestIs(digest),
        If::KeyUnchangedSince(unchanged),
    ];
    let mutated = mutations.map(|kind| v1::Commit {
        mutations: vec![mutation(kind)],
        ..good.clone()
    });
    let asked = conditions.map(|kind| v1::Commit {
        conditions: vec![v1::Condition { kind: Some(kind) }],
        ..good.clone()
    });
    mutated.into_iter().chain(asked).collect()
}

fn get(key: &'static [u8]) -> v1::GetRequest {
    v1::GetRequest {
        domain: "jobs".into(),
        key: key.into(),
        ..v1::GetRequest::default()
    }
}

fn fence_of(target: Option<Target>) -> v1::GetFenceRequest {
    v1::GetFenceRequest {
        domain: "jobs".into(),
        target,
        ..v1::GetFenceRequest::default()
    }
}

fn of(commit: v1::Commit) -> v1::CommitRequest {
    let commit = Some(commit);
    v1::CommitRequest { commit }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_name_is_malformed_in_every_call() {
    let place = Place::new();
    let server = place.start(&SMALL);
    let epoch = domain(&server, "jobs", &by_job()).await;
    let mut raw = server.raw().await;
    let held = authority(epoch, 1, "a");
    let good = Commit::new(jobs()).under(held.clone());
    let good = good.put(key("job/k"), value("")).to_wire();
    for commit in with_empty_key(&good) {
        assert!(
            is_malformed(raw.commit(of(commit.clone())).await),
            "{commit:?}"
        );
        let commit = Some(commit);
        assert!(is_malformed(raw.judge(v1::JudgeRequest { commit }).await));
    }
    assert!(is_malformed(raw.get(get(b"")).await));
    let by_key = fence_of(Some(Target::Key(Bytes::new())));
    assert!(is_malformed(raw.get_fence(by_key).await));
    assert!(is_malformed(raw.get_fence(fence_of(None)).await));
    // The guard of keys whose first component is empty has an empty name.
    let by_guard = fence_of(Some(Target::Guard(Bytes::new())));
    raw.get_fence(by_guard).await.unwrap();
    let holder = Bytes::new();
    let nobody = v1::Authority {
        holder,
        ..held.to_wire()
    };
    let authority = Some(v1::commit::Authority::One(nobody));
    let nobody = v1::Commit {
        authority,
        ..good.clone()
    };
    assert!(is_malformed(raw.commit(of(nobody)).await));
    let nowhere = v1::Commit {
        domain: String::new(),
        ..good.clone()
    };
    assert!(is_malformed(raw.commit(of(nowhere)).await));
    let nothing = v1::CommitRequest { commit: None };
    assert!(is_malformed(raw.commit(nothing).await));
    raw.commit(of(good)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_value_is_a_value() {
    let place = Place::new();
    let server = place.start(&SMALL);
    let epoch = domain(&server, "jobs", &by_job()).await;
    let mut raw = server.raw().await;
    let found = raw.get(get(b"job/k")).await.unwrap().into_inner();
    assert_eq!(found.record, None);
    let commit = Commit::new(jobs()).under(authority(epoch, 1, "a"));
    let commit = commit.put(key("job/k"), value(""));
    raw.commit(request(&commit)).await.unwrap();
    let found = raw.get(get(b"job/k")).await.unwrap().into_inner();
    let record = found.record.unwrap();
    assert!(record.value.is_empty() && record.generation > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_end_is_no_end_only_where_it_is_absent() {
    let place = Place::new();
    let server = place.start(&SMALL);
    let epoch = domain(&server, "jobs", &by_job()).await;
    let mut raw = server.raw().await;
    let commit = Commit::new(jobs()).under(authority(epoch, 1, "a"));
    let commit = commit
        .put(key("a"), value(""))
        .put(key([0xff; 3]), value(""));
    raw.commit(request(&commit)).await.unwrap();
    let range = |start: &'static [u8], end: Option<&'static [u8]>| {
        let (start, end) = (start.into(), end.map(Bytes::from_static));
        Keys::Range(v1::KeyRange { start, end })
    };
    for (keys, count) in [
        (range(b"", None), 2),
        (range(b"", Some(b"")), 0),
        (range(b"a", Some(b"a")), 0),
        (range(b"b", Some(b"a")), 0),
        (range(b"a", Some(b"a\0")), 1),
        (range(b"b", None), 1),
        (Keys::Prefix(Bytes::new()), 2),
    ] {
        let found = scan(&mut raw, keys.clone(), 0).await.unwrap();
        assert_eq!(found.len(), count, "{keys:?}");
    }
    let long = Bytes::from(vec![0xff; 1_025]);
    assert!(is_malformed(scan(&mut raw, Keys::Prefix(long), 0).await));
    let none = v1::ScanRequest {
        domain: "jobs".into(),
        ..v1::ScanRequest::default()
    };
    assert!(is_malformed(raw.scan(none).await));
}
