//! Asking what earlier holders did, through the wire: alone, and as part of a take-over.

use highwater_client::{Acquire, ClientError, StoredIntent};
use highwater_core::{Effects, Guard, Holder, IntentId, IntentState, Reason, Step, Ttl};
use highwater_proto::{ASKED_INTENTS_MAX, v1};
use tonic::Code;

use crate::harness::{Served, jobs, key, options, value};

fn id(name: &str) -> IntentId {
    IntentId::new(name).unwrap()
}

fn guard() -> Guard {
    Guard::new("j").unwrap()
}

fn holder(name: &str) -> Holder {
    Holder::new(name).unwrap()
}

fn ttl() -> Ttl {
    Ttl::new(3_600_000).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_learns_what_was_done_and_what_never_will_be() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    let old = served.session(1, "a").await;
    let step = |name: &str| {
        let draft = old.draft().put(key(format!("j/{name}")), value("v"));
        draft.for_intent(id(name), Step::FIRST)
    };
    let done = old.commit(step("done")).await.unwrap();
    let intents = [id("done"), id("never")];

    let look = client.reconcile(&jobs(), &intents, None).await.unwrap();
    assert_eq!(look.receipt, None);
    let effects = |found: &[highwater_client::IntentOutcome]| {
        let each = found
            .iter()
            .map(|one| (one.finding.effects, one.finding.settled));
        each.collect::<Vec<_>>()
    };
    let unsettled = [(Effects::Present, false), (Effects::Indeterminate, false)];
    assert_eq!(effects(&look.found), unsettled);

    let new = served.authority(2, "b");
    let fence = Some((guard(), new.clone()));
    let told = client.reconcile(&jobs(), &intents, fence).await.unwrap();
    let receipt = told.receipt.clone().unwrap();
    assert_eq!(receipt.guards[0].fence, new.to_fence());
    assert!(told.revision >= receipt.revision);
    let found = effects(&told.found);
    assert_eq!(found[0].0, Effects::Present);
    assert_eq!(found[1], (Effects::Absent, true));
    let Some(StoredIntent::Whole(record)) = &told.found[0].stored else {
        panic!("{told:?}")
    };
    assert_eq!(record.steps[0].receipt.revision, done.revision);
    let late = old.commit(step("never")).await.unwrap_err();
    assert!(matches!(late, ClientError::LostAuthority(_)), "{late:?}");
    let fence = Some((guard(), served.authority(1, "a")));
    let stale = client
        .reconcile(&jobs(), &intents, fence)
        .await
        .unwrap_err();
    let stale = stale.rejection().unwrap().reason.clone();
    assert!(matches!(stale, Reason::StaleTerm { .. }));
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_bounded_and_meant_for_one_destination() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    let many = |count: usize| (0..count).map(|n| id(&n.to_string())).collect::<Vec<_>>();
    let most = client
        .reconcile(&jobs(), &many(ASKED_INTENTS_MAX), None)
        .await;
    assert_eq!(most.unwrap().found.len(), ASKED_INTENTS_MAX);
    let more = client
        .reconcile(&jobs(), &many(ASKED_INTENTS_MAX + 1), None)
        .await;
    assert!(matches!(more, Err(ClientError::FixRequest(_))), "{more:?}");

    let address = format!("http://{}", served.address);
    let mut raw = v1::highwater_client::HighwaterClient::new(
        tonic::transport::Endpoint::from_shared(address)
            .unwrap()
            .connect_lazy(),
    );
    let request = |mark| v1::ReconcileRequest {
        destination: Some(v1::Destination {
            id: served.store.status().destination.bytes().to_vec().into(),
            incarnation: Some(v1::Incarnation {
                number: 1,
                mark: Some(mark),
            }),
        }),
        domain: "jobs".into(),
        intents: vec!["i".into()],
        fence: None,
    };
    let own = served.store.status().incarnation.mark().get();
    assert!(raw.reconcile(request(own)).await.is_ok());
    let other = raw.reconcile(request(own ^ 1)).await.unwrap_err();
    assert_eq!(other.code(), Code::FailedPrecondition);
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_take_over_can_acquire_ask_and_read_in_one_call() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    let old = client
        .acquire(&jobs(), &Acquire::new(guard(), holder("a"), ttl()))
        .await
        .unwrap();
    let old = client.session(jobs(), old.leases[0].lease.authority());
    let draft = old.draft().put(key("j/1"), value("v"));
    old.commit(draft.for_intent(id("done"), Step::FIRST))
        .await
        .unwrap();
    let intents = [id("done"), id("never")];
    let as_b = (&holder("b"), ttl());
    let held = client
        .acquire_and_take_over(&jobs(), &guard(), as_b, &intents)
        .await;
    let held = held.unwrap_err();
    assert!(matches!(held, ClientError::ConditionFailed(_)), "{held:?}");
    let by = highwater_core::Owner::new("ops").unwrap();
    client.revoke(&jobs(), &guard(), None, &by).await.unwrap();

    let taken = client
        .acquire_and_take_over(&jobs(), &guard(), as_b, &intents)
        .await;
    let mut taken = taken.unwrap();
    let lease = taken.acquired().unwrap().leases[0].lease.clone();
    assert_eq!(lease.holder, holder("b"));
    assert_eq!(
        taken.receipt().guards[0].fence,
        lease.authority().to_fence()
    );
    let [done, never] = taken.found() else {
        panic!("{:?}", taken.found())
    };
    assert_eq!(done.finding.effects, Effects::Present);
    let Some(StoredIntent::Brief(summary)) = &done.stored else {
        panic!("{done:?}")
    };
    assert_eq!(summary.state, IntentState::Open);
    assert_eq!(never.finding.effects, Effects::Absent);
    let page = taken.next().await.unwrap().unwrap();
    assert_eq!(page.records.len(), 1);
    assert_eq!(taken.next().await.unwrap(), None);
    let late = old.put(key("j/1"), value("w")).await.unwrap_err();
    assert!(matches!(late, ClientError::LostAuthority(_)));
    let new = client.session(jobs(), lease.authority());
    new.put(key("j/1"), value("w")).await.unwrap();
    let asking = new.take_over_asking(&guard(), &intents[..1]).await.unwrap();
    assert_eq!(asking.found()[0].finding.effects, Effects::Present);
    // Without intents the first answer has the first page, as ever.
    let mut plain = new.take_over(&guard()).await.unwrap();
    assert_eq!((plain.acquired(), plain.found().len()), (None, 0));
    assert_eq!(plain.next().await.unwrap().unwrap().records.len(), 1);
    served.stop().await.unwrap();
}
