//! Leases through the wire: their whole life, the line for a guard, and what is told of them.

use std::time::Duration;

use highwater_client::{Acquire, Client, ClientError, LeaseFilter, WatchChange, WatchUpdate};
use highwater_core::{
    Authority, EndCause, Guard, Holder, IntentId, IntentUse, KeyRange, LeaseId, LeaseStanding,
    Owner, Reason, Receipt, Step, Ttl,
};
use tokio::time::sleep;

use crate::harness::{Served, jobs, key, options, value};

/// Nothing that is waited for takes as long.
const LIMIT: Duration = Duration::from_secs(60);
const LONG: u64 = 3_600_000;

fn guard(name: &str) -> Guard {
    Guard::new(name).unwrap()
}

fn wanted(name: &str, holder: &str, ttl_ms: u64) -> Acquire {
    let (holder, ttl) = (Holder::new(holder).unwrap(), Ttl::new(ttl_ms).unwrap());
    Acquire::new(guard(name), holder, ttl)
}

/// The lease that a receipt tells of.
fn granted(receipt: &Receipt) -> (Authority, LeaseId) {
    assert_eq!(receipt.leases.len(), 1);
    let lease = &receipt.leases[0].lease;
    (lease.authority(), lease.id)
}

async fn acquire(client: &Client, name: &str, holder: &str) -> Receipt {
    let wanted = wanted(name, holder, LONG);
    client.acquire(&jobs(), &wanted).await.unwrap()
}

async fn release(client: &Client, name: &str, receipt: &Receipt) -> Result<Receipt, ClientError> {
    let (authority, lease) = granted(receipt);
    let guard = guard(name);
    client.release(&jobs(), (&guard, lease), &authority).await
}

#[track_caller]
fn reason(error: ClientError) -> Reason {
    error.rejection().unwrap().reason.clone()
}

async fn until_waiting(served: &Served, number: usize) {
    while served.store.status().waiting != number {
        sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_lives_from_its_grant_to_its_end_and_is_told_each_time() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    let nothing = client.lease(&jobs(), &guard("j")).await.unwrap();
    assert_eq!((nothing.record, nothing.standing), (None, None));
    let start = nothing.revision;
    let first = acquire(&client, "j", "a").await;
    let (authority, lease) = granted(&first);
    assert_eq!(lease.revision(), first.revision);
    assert_eq!(first.guards[0].fence, authority.to_fence(), "it seals");
    let held = client.acquire(&jobs(), &wanted("j", "b", LONG)).await;
    let error = held.unwrap_err();
    assert!(matches!(error, ClientError::ConditionFailed(_)));
    let observed = error.rejection().unwrap().observed.lease.clone().unwrap();
    let current = observed.record.unwrap().current.clone().unwrap();
    assert_eq!(current.authority(), authority);
    assert!(observed.remaining_ms.unwrap() > 0);
    assert!(matches!(reason(error), Reason::LeaseHeld { .. }));

    let session = client.session(jobs(), authority.clone());
    session.put(key("j/1"), value("v")).await.unwrap();
    let (held, shorter) = ((&guard("j"), lease), Ttl::new(LONG / 2));
    let renewed = client
        .renew(&jobs(), held, &authority, shorter, LIMIT)
        .await
        .unwrap();
    assert_eq!(Some(renewed.leases[0].lease.ttl), shorter);
    assert_eq!(renewed.leases[0].lease.renewed_at, renewed.revision);
    let live = client.lease(&jobs(), &guard("j")).await.unwrap();
    let Some(LeaseStanding::Live { remaining_ms }) = live.standing else {
        panic!("{live:?}")
    };
    assert!(remaining_ms <= LONG / 2);
    let released = release(&client, "j", &first).await.unwrap();
    assert_eq!(released.leases[0].ended, Some(EndCause::Released));
    let again = release(&client, "j", &first).await.unwrap_err();
    let ended = Some(EndCause::Released);
    let lease = Some(lease);
    assert_eq!(reason(again), Reason::LeaseGone { lease, ended });

    let second = acquire(&client, "j", "a").await;
    assert_ne!(granted(&second), granted(&first), "a new term");
    let by = Owner::new("ops").unwrap();
    let revoked = client
        .revoke(&jobs(), &guard("j"), None, &by)
        .await
        .unwrap();
    assert_eq!(revoked.leases[0].ended, Some(EndCause::Revoked { by }));
    let renewal = (&guard("j"), granted(&second).1);
    let late = client
        .renew(&jobs(), renewal, &granted(&second).0, None, LIMIT)
        .await;
    assert!(matches!(late, Err(ClientError::LostAuthority(_))));

    let all = KeyRange::all();
    let mut watch = client
        .watch_with_leases(&jobs(), &all, false, Some(start))
        .await
        .unwrap();
    let expected = [&first, &renewed, &released, &second, &revoked];
    let mut told = Vec::new();
    while told.len() < expected.len() {
        if let WatchUpdate::Commit { revision, changes } = watch.next().await.unwrap()
            && let [WatchChange::Leased(of, record)] = &changes[..]
        {
            assert_eq!((of, record.changed_at), (&guard("j"), revision));
            told.push(revision);
        }
    }
    assert_eq!(told, expected.map(|receipt| receipt.revision));
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_wait_are_served_in_their_order_and_who_goes_away_leaves_the_line() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    let first = acquire(&client, "j", "0").await;
    let mut waiting = Vec::new();
    for number in 1..=3 {
        let own = served.client().await;
        let wanted = wanted("j", &number.to_string(), LONG).waiting(LIMIT);
        waiting.push(tokio::spawn(
            async move { own.acquire(&jobs(), &wanted).await },
        ));
        until_waiting(&served, number).await;
    }
    // The second of them goes away.
    waiting.remove(1).abort();
    until_waiting(&served, 2).await;
    release(&client, "j", &first).await.unwrap();
    let mut last = 0;
    for (waiting, holder) in waiting.into_iter().zip(["1", "3"]) {
        let receipt = waiting.await.unwrap().unwrap();
        let (authority, _) = granted(&receipt);
        assert_eq!(authority.holder().as_bytes(), holder.as_bytes());
        assert!(authority.term().sequence.get() > last);
        last = authority.term().sequence.get();
        release(&client, "j", &receipt).await.unwrap();
    }
    assert_eq!(served.store.status().waiting, 0);
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_in_vain_is_answered_with_who_holds_and_a_bad_one_at_once() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    let first = acquire(&client, "j", "a").await;
    let brief = wanted("j", "b", LONG).waiting(Duration::from_millis(30));
    let refused = client.acquire(&jobs(), &brief).await.unwrap_err();
    assert!(matches!(reason(refused), Reason::LeaseHeld { .. }));
    assert_eq!(served.store.status().waiting, 0);
    // What waiting can't mend isn't waited for, though somebody holds the guard.
    let (id, step) = (IntentId::new("i").unwrap(), Step::new(2).unwrap());
    let mut skipped = wanted("j", "b", LONG).waiting(LIMIT);
    skipped.intent = Some(IntentUse {
        id: id.clone(),
        step,
        completes: false,
    });
    let refused = client.acquire(&jobs(), &skipped).await.unwrap_err();
    assert!(matches!(refused, ClientError::Intent(_)), "{refused:?}");
    let nowhere = wanted("a/b", "b", LONG).waiting(LIMIT);
    let refused = client.acquire(&jobs(), &nowhere).await.unwrap_err();
    assert!(matches!(refused, ClientError::FixRequest(_)), "{refused:?}");
    release(&client, "j", &first).await.unwrap();
    // The step of an intent is told again while its own lease holds the guard.
    let mut step = wanted("j", "b", LONG).waiting(LIMIT);
    step.intent = Some(IntentUse {
        id,
        step: Step::FIRST,
        completes: false,
    });
    let told = client.acquire(&jobs(), &step).await.unwrap();
    let again = client.acquire(&jobs(), &step).await.unwrap();
    assert!(again.replayed);
    assert_eq!(granted(&again), granted(&told));
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ending_server_lets_those_who_wait_go() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    acquire(&client, "j", "a").await;
    let wanted = wanted("j", "b", LONG).waiting(LIMIT);
    let waiting = tokio::spawn(async move { client.acquire(&jobs(), &wanted).await });
    until_waiting(&served, 1).await;
    served.stop().await.unwrap();
    let refused = waiting.await.unwrap().unwrap_err();
    assert!(matches!(refused, ClientError::NotSent(_)), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_are_listed_page_by_page_live_ones_or_all() {
    let mut options = options();
    options.page_records_max = 2;
    let served = Served::start(options).await;
    let client = served.client().await;
    let mut receipts = Vec::new();
    for name in ["", "a", "b", "c", "d"] {
        receipts.push((name, acquire(&client, name, "h").await));
    }
    for (name, receipt) in &receipts[1..4] {
        release(&client, name, receipt).await.unwrap();
    }
    for (filter, expected) in [
        (LeaseFilter::All, &["", "a", "b", "c", "d"][..]),
        (LeaseFilter::Live, &["", "d"]),
    ] {
        let (mut listed, mut token) = (Vec::new(), None);
        loop {
            let page = client.leases(&jobs(), filter, token).await.unwrap();
            assert!(page.leases.len() <= 2);
            for row in page.leases {
                let live = matches!(row.standing, Some(LeaseStanding::Live { .. }));
                assert_eq!(live, row.record.current.is_some());
                listed.push(row.guard);
            }
            token = page.token;
            if token.is_none() {
                break;
            }
        }
        let expected: Vec<Guard> = expected.iter().map(|name| guard(name)).collect();
        assert_eq!(listed, expected, "{filter:?}");
    }
    served.stop().await.unwrap();
}
