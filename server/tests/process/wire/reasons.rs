//! Every reason that can be reached without a fault: its status, its details, and in band.

use std::num::NonZeroU64;

use highwater_core::{
    Admission, Commit, Condition, DomainName, Ending, Epoch, EpochMark, ExpectedDestination,
    Generation, Guard, GuardRule, HolderBinding, Incarnation, IncarnationMark, IntentId, Mutation,
    Policy, Revision, Step,
};
use highwater_proto::convert::ToWire;
use highwater_proto::v1;
use highwater_proto::v1::streamed_verdict::Verdict;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use super::{Raw, domain, request, told};
use crate::support::{Place, SMALL, Server, TOO_LONG, authority, by_job, jobs, key, value};

/// A commit that is refused, and how.
struct Refused {
    reason: &'static str,
    code: Code,
    commit: Commit,
}

fn in_domain(name: &str) -> Commit {
    Commit::new(DomainName::new(name).unwrap())
}

fn refused(reason: &'static str, code: Code, commit: Commit) -> Refused {
    Refused {
        reason,
        code,
        commit,
    }
}

/// Commits that the other policies refuse.
async fn of_other_domains(server: &Server) -> Vec<Refused> {
    let versioned = Policy::default().with_admission(Admission::Versioned);
    domain(server, "versioned", &versioned).await;
    let steps = Policy::default().with_max_sequence_step(NonZeroU64::new(10));
    let steps = domain(server, "steps", &steps).await;
    let bound = Policy::default().with_holder_binding(HolderBinding::Exact);
    let bound = domain(server, "bound", &bound).await;
    let put = |name, held| in_domain(name).under(held).put(key("k"), value(""));
    let client = server.client().await;
    let fenced = put("steps", authority(steps, 1, "a"));
    client.commit(&fenced).await.unwrap();
    let unconditional = in_domain("versioned").put(key("k"), value(""));
    let jump = put("steps", authority(steps, 12, "a"));
    let nobody = put("bound", authority(bound, 1, "a"));
    vec![
        refused("PreconditionRequired", Code::InvalidArgument, unconditional),
        refused("SequenceJump", Code::FailedPrecondition, jump),
        refused("WrongHolder", Code::PermissionDenied, nobody),
    ]
}

/// Commits that what is stored of intents refuses.
async fn of_intents(server: &Server, epoch: Epoch) -> Vec<Refused> {
    let held = || in_domain("jobs").under(authority(epoch, 5, "b"));
    let id = |name| IntentId::new(name).unwrap();
    let put = || held().put(key("job/k"), value("kept"));
    let client = server.client().await;
    for (name, completing) in [("open", false), ("ended", true)] {
        let step = put().for_intent(id(name), Step::FIRST);
        let step = if completing { step.completing() } else { step };
        client.commit(&step).await.unwrap();
    }
    let exists = Code::AlreadyExists;
    let second = Step::FIRST.next().unwrap();
    let close = held().with(Mutation::CloseIntent {
        intent: id("nobody"),
        guard: Some(Guard::new("job").unwrap()),
        ending: Ending::Cancelled,
    });
    // What its conditions looked at is in the receipt, and so in the intent's record.
    let name = |number: usize| key([format!("{number:04}").as_bytes(), &[0xff; 1_000]].concat());
    let looks = (0..300).map(|number| Condition::GenerationIs {
        key: name(number),
        generation: None,
    });
    let large = looks.fold(put(), Commit::when);
    vec![
        refused(
            "IntentConflict",
            exists,
            held()
                .delete(key("job/k"))
                .for_intent(id("open"), Step::FIRST),
        ),
        refused(
            "IntentClosed",
            exists,
            put().for_intent(id("ended"), second),
        ),
        refused("UnknownIntent", Code::NotFound, close),
        refused(
            "IntentExhausted",
            Code::ResourceExhausted,
            large.for_intent(id("large"), Step::FIRST),
        ),
    ]
}

/// Commits for every reason, where `job` was fenced at 5 by `b` and `job/k` is written.
async fn refusals(server: &Server, epoch: Epoch) -> Vec<Refused> {
    let own = server.client().await.destination();
    let mark = IncarnationMark::new(!own.incarnation.mark().get());
    let incarnation = Incarnation::new(own.incarnation.number(), mark);
    let foreign = ExpectedDestination { incarnation, ..own };
    let fork = Epoch::new(epoch.number(), EpochMark::new(!epoch.mark().get()));
    let put = |commit: Commit| commit.put(key("job/k"), value("late"));
    let under = |epoch, sequence, holder| {
        let held = authority(epoch, sequence, holder);
        in_domain("jobs").under(held)
    };
    let held = || under(epoch, 5, "b");
    let elsewhere = in_domain("nowhere").under(authority(epoch, 5, "b"));
    let absent = Condition::GenerationIs {
        key: key("job/k"),
        generation: None,
    };
    let (wrong, stop) = (Code::InvalidArgument, Code::FailedPrecondition);
    let mut all = vec![
        refused("Malformed", wrong, held()),
        refused(
            "WrongDestination",
            stop,
            put(held().for_destination(foreign)),
        ),
        refused("UnknownDomain", Code::NotFound, put(elsewhere)),
        refused("AuthorityRequired", wrong, put(in_domain("jobs"))),
        refused("UnknownEpoch", stop, put(under(fork, 9, "b"))),
        refused("StaleTerm", stop, put(under(epoch, 4, "b"))),
        refused("HolderConflict", stop, put(under(epoch, 5, "a"))),
        refused("ConditionFailed", Code::Aborted, put(held().when(absent))),
    ];
    all.extend(of_other_domains(server).await);
    all.extend(of_intents(server, epoch).await);
    all
}

async fn revision(raw: &mut Raw) -> u64 {
    let status = raw.status(v1::StatusRequest {}).await.unwrap();
    status.into_inner().revision
}

/// A server on which `job` is fenced at 5 by `b`.
async fn fenced(place: &Place) -> (Server, Raw, Epoch) {
    let server = place.start(&SMALL);
    let epoch = domain(&server, "jobs", &by_job()).await;
    let mut raw = server.raw().await;
    let held = authority(epoch, 5, "b");
    let commit = Commit::new(jobs())
        .under(held)
        .put(key("job/k"), value("kept"));
    raw.commit(request(&commit)).await.unwrap();
    (server, raw, epoch)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_has_its_status_and_its_evidence_and_changes_nothing() {
    let place = Place::new();
    let (server, mut raw, epoch) = fenced(&place).await;
    let refusals = refusals(&server, epoch).await;
    let before = revision(&mut raw).await;
    for refused in &refusals {
        let commit = raw.commit(request(&refused.commit)).await.unwrap_err();
        let judged = v1::JudgeRequest {
            commit: Some(refused.commit.to_wire()),
        };
        let judged = raw.judge(judged).await.unwrap_err();
        for status in [&commit, &judged] {
            assert_eq!(told(status), (refused.code, refused.reason.to_owned()));
            let rejection = highwater_proto::status::rejection(status).unwrap().unwrap();
            assert_eq!(rejection.reason.code(), refused.reason);
            assert_eq!(rejection.observed.revision.get(), before);
        }
        let evidence = [&commit, &judged].map(highwater_proto::status::rejection);
        assert_eq!(evidence[0], evidence[1]);
    }
    // A fresh authority that only asks raises nothing either.
    let newer = Commit::new(jobs())
        .under(authority(epoch, 9, "c"))
        .delete(key("job/k"));
    let judge = v1::JudgeRequest {
        commit: Some(newer.to_wire()),
    };
    let receipt = raw
        .judge(judge)
        .await
        .unwrap()
        .into_inner()
        .receipt
        .unwrap();
    assert_eq!(receipt.revision, before + 1);
    assert_eq!(revision(&mut raw).await, before);
    let still = Commit::new(jobs())
        .under(authority(epoch, 5, "b"))
        .put(key("job/k"), value("kept"));
    raw.commit(request(&still)).await.unwrap();
    let again = v1::CreateDomainRequest {
        name: "jobs".into(),
        policy: Some(by_job().to_wire()),
        destination: None,
    };
    let exists = raw.create_domain(again).await.unwrap_err();
    assert_eq!(told(&exists), (Code::AlreadyExists, "DomainExists".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_gives_the_same_reasons_in_order_between_receipts() {
    let place = Place::new();
    let (server, mut raw, epoch) = fenced(&place).await;
    let refusals = refusals(&server, epoch).await;
    let held = authority(epoch, 5, "b");
    let good = Commit::new(jobs())
        .under(held)
        .put(key("job/other"), value("kept"));
    let commits = refusals.iter().flat_map(|refused| [&refused.commit, &good]);
    let commits = commits.zip(100..).map(|(commit, id)| v1::StreamedCommit {
        id,
        commit: Some(commit.to_wire()),
    });
    let message = v1::CommitStreamRequest {
        commits: commits.collect(),
    };
    let answers = raw.commit_stream(tokio_stream::iter([message])).await;
    let mut answers = answers.unwrap().into_inner();
    let mut verdicts = Vec::new();
    while let Some(answer) = answers.message().await.unwrap() {
        verdicts.extend(answer.verdicts);
    }
    assert_eq!(verdicts.len(), refusals.len() * 2);
    let ids: Vec<_> = verdicts.iter().map(|verdict| verdict.id).collect();
    assert!(ids.iter().copied().eq(100..100 + verdicts.len() as u64));
    let mut last = 0;
    for (pair, refused) in verdicts.chunks(2).zip(&refusals) {
        let Some(Verdict::Rejection(rejection)) = &pair[0].verdict else {
            panic!("{:?}", pair[0])
        };
        let name = rejection.code().as_str_name().replace('_', "");
        assert_eq!(name, format!("CODE{}", refused.reason.to_uppercase()));
        let Some(Verdict::Receipt(receipt)) = &pair[1].verdict else {
            panic!("{:?}", pair[1])
        };
        assert!(receipt.revision > last);
        last = receipt.revision;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_longer_remembered_is_too_old_and_not_guessed() {
    let place = Place::new();
    let options: Vec<_> = SMALL.iter().copied().chain(["--deletions-max=1"]).collect();
    let server = place.start(&options);
    let epoch = domain(&server, "jobs", &by_job()).await;
    let session = server
        .client()
        .await
        .session(jobs(), authority(epoch, 1, "a"));
    let first = session.put(key("job/0"), value("")).await.unwrap().revision;
    let asks = |since: Revision| {
        let unchanged = Condition::KeyUnchangedSince {
            key: key("never/k"),
            revision: since,
        };
        session.draft().when(unchanged).put(key("job/1"), value(""))
    };
    session.commit(asks(first)).await.unwrap();
    let mut tries = 0;
    let refused = loop {
        session
            .put(key("job/0"), value([b'.'; 9_000]))
            .await
            .unwrap();
        session.delete(key("job/0")).await.unwrap();
        session
            .put(key("job/2"), value([b'.'; 9_000]))
            .await
            .unwrap();
        session.delete(key("job/2")).await.unwrap();
        if let Err(error) = session.commit(asks(first)).await {
            break error;
        }
        tries += 1;
        assert!(tries < 2_000);
    };
    assert_eq!(refused.rejection().unwrap().reason.code(), "TooOld");
    let now = session.get(&key("job/0")).await.unwrap().revision;
    session.commit(asks(now)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_domain_that_fits_is_made_and_the_next_one_refused() {
    let place = Place::new();
    let server = place.start(&SMALL);
    let client = server.client().await;
    let mut making = tokio::task::JoinSet::new();
    for number in 0..1_024 {
        let client = client.clone();
        making.spawn(async move {
            let name = DomainName::new(&format!("d{number}")).unwrap();
            client.create_domain(&name, &by_job()).await.unwrap();
        });
    }
    making.join_all().await;
    let mut raw = server.raw().await;
    let more = v1::CreateDomainRequest {
        name: "more".into(),
        policy: Some(by_job().to_wire()),
        destination: None,
    };
    let refused = raw.create_domain(more).await.unwrap_err();
    assert_eq!(
        told(&refused),
        (Code::ResourceExhausted, "TooManyDomains".into())
    );
    assert_eq!(client.domains().await.unwrap().len(), 1_024);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_is_refused_as_a_writer_would_be_and_a_take_over_reads_what_it_fenced() {
    let place = Place::new();
    let (server, mut raw, epoch) = fenced(&place).await;
    let guard = |sequence, holder| {
        Some(v1::ReadGuard {
            authority: Some(authority(epoch, sequence, holder).to_wire()),
            guards: Vec::new(),
        })
    };
    let get = |guard| v1::GetRequest {
        domain: "jobs".into(),
        key: b"job/k".as_slice().into(),
        guard,
        destination: None,
    };
    for held in [guard(5, "b"), guard(6, "c"), None] {
        assert!(
            raw.get(get(held))
                .await
                .unwrap()
                .into_inner()
                .record
                .is_some()
        );
    }
    let stop = Code::FailedPrecondition;
    for (held, reason) in [
        (guard(4, "b"), "StaleTerm"),
        (guard(5, "a"), "HolderConflict"),
    ] {
        let refused = raw.get(get(held.clone())).await.unwrap_err();
        assert_eq!(told(&refused), (stop, reason.into()));
        let scan = v1::ScanRequest {
            domain: "jobs".into(),
            keys: Some(v1::scan_request::Keys::Guard(b"job".as_slice().into())),
            read_guard: held,
            ..v1::ScanRequest::default()
        };
        assert_eq!(
            told(&raw.scan(scan).await.unwrap_err()),
            (stop, reason.into())
        );
    }
    let take = |sequence, holder| v1::TakeOverRequest {
        domain: "jobs".into(),
        guard: b"job".as_slice().into(),
        by: Some(v1::take_over_request::By::Authority(
            authority(epoch, sequence, holder).to_wire(),
        )),
        ..v1::TakeOverRequest::default()
    };
    assert_eq!(
        told(&raw.take_over(take(4, "b")).await.unwrap_err()),
        (stop, "StaleTerm".into())
    );
    let mut taken = raw.take_over(take(7, "c")).await.unwrap().into_inner();
    let first = taken.message().await.unwrap().unwrap();
    let (receipt, page) = (first.receipt.unwrap(), first.page.unwrap());
    assert_eq!(receipt.revision, page.revision);
    assert_eq!(page.records.len(), 1);
    assert_eq!(page.records[0].value, "kept");
    assert_eq!(
        told(&raw.get(get(guard(5, "b"))).await.unwrap_err()),
        (stop, "StaleTerm".into())
    );
    let client = server.client().await;
    let fence = client
        .fence(&jobs(), &Guard::new("job").unwrap())
        .await
        .unwrap();
    assert_eq!(fence.unwrap().term.sequence.get(), 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_never_comes_back() {
    let place = Place::new();
    let server = place.start(&SMALL);
    let epoch = domain(&server, "jobs", &of_domain()).await;
    let session = server
        .client()
        .await
        .session(jobs(), authority(epoch, 1, "a"));
    let first = session.put(key("k"), value("same")).await.unwrap().writes[0].generation;
    session.delete(key("k")).await.unwrap();
    let second = session.put(key("k"), value("same")).await.unwrap().writes[0].generation;
    assert!(second > first);
    let when = |generation: Option<Generation>| {
        let condition = Condition::GenerationIs {
            key: key("k"),
            generation,
        };
        session.draft().when(condition).put(key("k"), value("new"))
    };
    for wrong in [first, None] {
        let refused = session.commit(when(wrong)).await.unwrap_err();
        let rejection = refused.rejection().unwrap();
        assert_eq!(rejection.reason.code(), "ConditionFailed");
        assert_eq!(rejection.observed.generation, second);
    }
    session.commit(when(second)).await.unwrap();
}

/// One guard for the whole domain.
fn of_domain() -> Policy {
    Policy::default().with_guard(GuardRule::Domain).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_reflection_are_served() {
    let place = Place::new();
    let server = place.start(&SMALL);
    let mut health = HealthClient::new(server.channel().await);
    let serving = async {
        for service in ["", "highwater.v1.Highwater"] {
            let service = service.to_owned();
            let check = HealthCheckRequest { service };
            while health
                .check(check.clone())
                .await
                .unwrap()
                .into_inner()
                .status()
                != ServingStatus::Serving
            {
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::time::timeout(TOO_LONG, serving).await.unwrap();
    let mut reflection = ServerReflectionClient::new(server.channel().await);
    let ask = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let answers = reflection
        .server_reflection_info(tokio_stream::iter([ask]))
        .await;
    let answer = answers
        .unwrap()
        .into_inner()
        .message()
        .await
        .unwrap()
        .unwrap();
    let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
        panic!("{answer:?}")
    };
    let names: Vec<_> = list
        .service
        .into_iter()
        .map(|service| service.name)
        .collect();
    for name in ["highwater.v1.Highwater", "grpc.health.v1.Health"] {
        assert!(names.iter().any(|listed| listed == name), "{names:?}");
    }
}
