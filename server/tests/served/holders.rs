//! Holders: leases that are kept alive, and what is sent once they may be lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use highwater::Store;
use highwater_client::{
    Acquire, Client, ClientError, Clock, HolderOptions, LeaseHolder, Lost, Session, Standing,
    SystemClock,
};
use highwater_core::{EndCause, Guard, Holder, LeaseRecord, Owner, Reason, Ttl};
use tokio::time::sleep;

use crate::gate::Gate;
use crate::harness::{Served, jobs, key, options, value};
use crate::proxy::verdicts;

const LIMIT: Duration = Duration::from_secs(60);
const LONG: u64 = 3_600_000;

fn guard() -> Guard {
    Guard::new("j").unwrap()
}

fn wanted(holder: &str, ttl_ms: u64) -> Acquire {
    let (holder, ttl) = (Holder::new(holder).unwrap(), Ttl::new(ttl_ms).unwrap());
    Acquire::new(guard(), holder, ttl)
}

async fn hold(client: &Client, holder: &str, ttl_ms: u64) -> LeaseHolder {
    let options = HolderOptions::default();
    LeaseHolder::acquire(client, &jobs(), &wanted(holder, ttl_ms), options)
        .await
        .unwrap()
}

fn stored(store: &Store) -> Arc<LeaseRecord> {
    let snapshot = store.snapshot().unwrap();
    snapshot.lease(&jobs(), &guard()).unwrap().unwrap()
}

/// Waits until a lease was renewed once more.
async fn renewed(store: &Store) {
    let renewal = |record: &LeaseRecord| record.current.as_ref().map(|lease| lease.renewed_at);
    let before = renewal(&stored(store));
    while renewal(&stored(store)) == before {
        sleep(Duration::from_millis(5)).await;
    }
}

async fn until(holder: &LeaseHolder, standing: &Standing) {
    while holder.standing() != *standing {
        sleep(Duration::from_millis(2)).await;
    }
}

async fn put(session: &Session) -> Result<highwater_core::Receipt, ClientError> {
    session.put(key("j/1"), value("v")).await
}

/// A clock that a test sets on, beside the system's or instead of it.
#[derive(Debug, Default)]
struct Set {
    milliseconds: AtomicU64,
    runs: bool,
}

impl Clock for Set {
    fn now(&self) -> Duration {
        let set = Duration::from_millis(self.milliseconds.load(Ordering::SeqCst));
        if self.runs {
            set + SystemClock::default().now()
        } else {
            set
        }
    }
}

async fn with_clock(client: &Client, ttl_ms: u64, clock: &Arc<Set>) -> LeaseHolder {
    let clock = Arc::<Set>::clone(clock);
    let options = HolderOptions {
        clock,
        ..HolderOptions::default()
    };
    LeaseHolder::acquire(client, &jobs(), &wanted("a", ttl_ms), options)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_renews_until_it_lets_go() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    let holder = hold(&client, "a", 600).await;
    let session = holder.session();
    for _ in 0..4 {
        renewed(&served.store).await;
        put(&session).await.unwrap();
    }
    let current = stored(&served.store).current.clone().unwrap();
    assert_eq!(current.authority(), holder.authority(), "the same term");
    let released = holder.release().await.unwrap();
    assert_eq!(released.leases[0].ended, Some(EndCause::Released));
    let before = verdicts(&served.store);
    let error = put(&session).await.unwrap_err();
    let ClientError::NotHolder(Standing::Lost(Lost::Released)) = error else {
        panic!("{error:?}")
    };
    assert_eq!(verdicts(&served.store), before, "nothing is sent");
    // One that had to wait for its grant holds as well.
    let first = hold(&client, "b", LONG).await;
    let waiting = wanted("c", 600).waiting(LIMIT);
    let (jobs, options) = (jobs(), HolderOptions::default());
    let waiting = LeaseHolder::acquire(&client, &jobs, &waiting, options);
    let (released, second) = tokio::join!(first.release(), waiting);
    released.unwrap();
    let second = second.unwrap();
    assert!(second.is_holder());
    put(&second.session()).await.unwrap();
    served.stop().await.unwrap();
}

/// Losing a connection isn't losing the lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_keeps_its_term_over_connections_that_are_cut_again_and_again() {
    let served = Served::start(options()).await;
    let gate = Gate::start(&served).await;
    let holder = hold(&gate.client().await, "a", 4_000).await;
    for _ in 0..8 {
        gate.cut();
        sleep(Duration::from_millis(50)).await;
        gate.open();
        renewed(&served.store).await;
    }
    until(&holder, &Standing::Held).await;
    put(&holder.session()).await.unwrap();
    let current = stored(&served.store).current.clone().unwrap();
    assert_eq!(current.authority(), holder.authority());
    served.stop().await.unwrap();
}

/// Whoever comes next finds that the holder knows, whatever became of its renewals.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_whose_renewals_are_held_back_knows_before_the_next_one_holds() {
    let served = Served::start(options()).await;
    let gate = Gate::start(&served).await;
    let holder = hold(&gate.client().await, "a", 1_000).await;
    let session = holder.session();
    renewed(&served.store).await;
    gate.hold();
    let direct = served.client().await;
    let next = wanted("b", LONG).waiting(LIMIT);
    direct.acquire(&jobs(), &next).await.unwrap();
    assert!(!holder.is_holder());
    assert_eq!(holder.lost().await, Lost::Expired);
    // The renewals that were held back arrive, and revive nothing.
    gate.open();
    let before = stored(&served.store).current.clone();
    assert!(matches!(
        put(&session).await,
        Err(ClientError::NotHolder(_))
    ));
    assert_eq!(holder.standing(), Standing::Lost(Lost::Expired));
    assert_eq!(stored(&served.store).current, before);
    served.stop().await.unwrap();
}

/// The time counts from the moment at which the request was sent: what the way took is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_was_on_its_way_for_too_long_holds_nothing() {
    let served = Served::start(options()).await;
    let gate = Gate::start(&served).await;
    let client = gate.client().await;
    gate.hold();
    let acquiring = tokio::spawn(async move { hold(&client, "a", 300).await });
    sleep(Duration::from_millis(400)).await;
    gate.open();
    let holder = acquiring.await.unwrap();
    assert_eq!(holder.standing(), Standing::Lost(Lost::Expired));
    let before = verdicts(&served.store);
    let refused = put(&holder.session()).await;
    assert!(
        matches!(refused, Err(ClientError::NotHolder(_))),
        "{refused:?}"
    );
    assert_eq!(verdicts(&served.store), before, "nothing is sent");
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_while_a_renewal_is_in_doubt_and_all_goes_on_after_it() {
    let served = Served::start(options()).await;
    let gate = Gate::start(&served).await;
    let client = gate.client().await;
    let holder = hold(&client, "a", 20_000).await;
    let session = holder.session();
    gate.cut();
    until(&holder, &Standing::Doubtful).await;
    assert!(!holder.is_holder());
    let error = put(&session).await.unwrap_err();
    let ClientError::NotHolder(Standing::Doubtful) = error else {
        panic!("{error:?}")
    };
    gate.open();
    until(&holder, &Standing::Held).await;
    put(&session).await.unwrap();
    served.stop().await.unwrap();
}

/// In a suspend timers stand still and the clock goes on: the first question finds it out.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_suspend_the_holder_knows_at_the_first_question() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    let clock = Arc::new(Set {
        runs: true,
        ..Set::default()
    });
    let holder = with_clock(&client, LONG, &clock).await;
    let session = holder.session();
    put(&session).await.unwrap();
    clock.milliseconds.store(LONG / 2, Ordering::SeqCst);
    assert!(holder.is_holder(), "half of its time is left");
    clock.milliseconds.store(LONG, Ordering::SeqCst);
    let before = verdicts(&served.store);
    let error = put(&session).await.unwrap_err();
    assert!(
        matches!(error, ClientError::NotHolder(Standing::Lost(Lost::Expired))),
        "{error:?}"
    );
    assert_eq!(verdicts(&served.store), before, "nothing is sent");
    clock.milliseconds.store(0, Ordering::SeqCst);
    assert!(!holder.is_holder(), "it is final");
    assert_eq!(holder.lost().await, Lost::Expired);
    // By the destination's clock the lease is still live: the holder erred on the safe side.
    assert!(stored(&served.store).current.is_some());
    served.stop().await.unwrap();
}

/// A clock that stands still makes a holder believe for too long. Then the fence decides.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_whose_clock_stands_still_is_stopped_by_the_fence() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    let holder = with_clock(&client, LONG, &Arc::new(Set::default())).await;
    let session = holder.session();
    let by = Owner::new("ops").unwrap();
    client.revoke(&jobs(), &guard(), None, &by).await.unwrap();
    let next = client.acquire(&jobs(), &wanted("b", LONG)).await.unwrap();
    assert!(holder.is_holder(), "nobody has told it");
    let error = put(&session).await.unwrap_err();
    let ClientError::LostAuthority(rejection) = error else {
        panic!("{error:?}")
    };
    assert!(matches!(rejection.reason, Reason::StaleTerm { .. }));
    assert_eq!(
        rejection.observed.fence,
        Some(next.leases[0].lease.authority().to_fence())
    );
    assert_eq!(holder.lost().await, Lost::Refused(rejection));
    let released = holder.release().await.unwrap_err();
    assert!(
        matches!(released, ClientError::NotHolder(_)),
        "{released:?}"
    );
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_hears_of_a_revocation_with_its_next_renewal() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    let holder = hold(&client, "a", 1_000).await;
    let by = Owner::new("ops").unwrap();
    client.revoke(&jobs(), &guard(), None, &by).await.unwrap();
    let Lost::Refused(rejection) = holder.lost().await else {
        panic!("{:?}", holder.standing())
    };
    let lease = Some(holder.lease().id);
    let ended = Some(EndCause::Revoked { by });
    assert_eq!(rejection.reason, Reason::LeaseGone { lease, ended });
    served.stop().await.unwrap();
}

/// First the work stops, then the lease is given up: whatever was written was written before.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_ends_before_the_release_is_sent() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    let holder = hold(&client, "a", LONG).await;
    let session = holder.session();
    let (mut commits, mut verdicts) = session.pipeline().await.unwrap();
    for number in 0..50_u32 {
        let draft = session.draft().put(key(format!("j/p{number}")), value("v"));
        commits.send(draft).await.unwrap();
    }
    let writes: Vec<_> = (0..100_u32)
        .map(|number| {
            let session = session.clone();
            let name = key(format!("j/{number}"));
            tokio::spawn(async move { session.put(name, value("v")).await })
        })
        .collect();
    let taking = tokio::spawn(async move {
        commits.finish();
        let mut revisions = Vec::new();
        while let Some(verdict) = verdicts.next().await {
            revisions.push(verdict.result.unwrap().revision);
        }
        revisions
    });
    tokio::task::yield_now().await;
    let released = holder.release().await.unwrap();
    let mut before = taking.await.unwrap();
    assert_eq!(before.len(), 50);
    for write in writes {
        match write.await.unwrap() {
            Ok(receipt) => before.push(receipt.revision),
            Err(ClientError::NotHolder(Standing::Lost(Lost::Released))) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(before.iter().all(|revision| *revision < released.revision));
    served.stop().await.unwrap();
}

/// While the answer to one write is on its way, no release is.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_not_sent_before_the_last_answer_is_there() {
    let served = Served::start(options()).await;
    let gate = Gate::start(&served).await;
    let holder = hold(&gate.client().await, "a", LONG).await;
    let session = holder.session();
    let before = verdicts(&served.store);
    gate.deafen();
    let writing = tokio::spawn(async move { put(&session).await });
    while verdicts(&served.store) == before {
        sleep(Duration::from_millis(2)).await;
    }
    let releasing = tokio::spawn(holder.release());
    // One that didn't wait would be there by then.
    sleep(Duration::from_millis(300)).await;
    assert!(stored(&served.store).current.is_some());
    gate.open();
    let written = writing.await.unwrap().unwrap();
    let released = releasing.await.unwrap().unwrap();
    assert!(written.revision < released.revision);
    served.stop().await.unwrap();
}
