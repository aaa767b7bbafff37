//! What a holder sees: receipts, refusals, and the end of its session.

use highwater_client::{Client, ClientError, ClientOptions, NotSent};
use highwater_core::{
    Condition, ExpectedDestination, Guard, Incarnation, IncarnationMark, Malformed, Policy, Reason,
};
use tokio::net::TcpListener;

use crate::harness::{Served, jobs, key, options, value};

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_holder_is_told_once_and_its_session_sends_no_more() {
    let served = Served::start(options()).await;
    let old = served.session(1, "a").await;
    let written = old.put(key("job/1"), value("one")).await.unwrap();
    let new = served.session(2, "b").await;
    let mut taken = new.take_over(&Guard::new("job").unwrap()).await.unwrap();
    assert!(taken.receipt().revision > written.revision);
    let page = taken.next().await.unwrap().unwrap();
    assert_eq!(page.records.len(), 1);
    assert_eq!(page.records[0].1.value, value("one"));
    assert!(taken.next().await.unwrap().is_none());

    let before = served.store.revision();
    let refused = old.put(key("job/1"), value("late")).await.unwrap_err();
    let ClientError::LostAuthority(rejection) = &refused else {
        panic!("{refused:?}")
    };
    let presented = served.authority(1, "a");
    assert_eq!(rejection.reason, Reason::StaleTerm { presented });
    assert_eq!(
        rejection.observed.fence,
        Some(served.authority(2, "b").to_fence())
    );
    assert_eq!(served.store.revision(), before);

    // The session is stopped: even a key that nobody fenced isn't tried.
    let stopped = old.put(key("other"), value("")).await.unwrap_err();
    assert!(
        matches!(stopped, ClientError::SessionStopped { .. }),
        "{stopped:?}"
    );
    assert_eq!(old.stopped(), Some(&**rejection));
    assert_eq!(served.store.get(&jobs(), &key("other")).unwrap(), None);
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_and_malformed_requests_are_refused_with_their_evidence() {
    let served = Served::start(options()).await;
    let session = served.session(1, "a").await;
    let first = session.put(key("job/1"), value("one")).await.unwrap();
    let absent = Condition::GenerationIs {
        key: key("job/1"),
        generation: None,
    };
    let draft = session
        .draft()
        .when(absent.clone())
        .put(key("job/1"), value("two"));
    let refused = session.commit(draft).await.unwrap_err();
    let ClientError::ConditionFailed(rejection) = &refused else {
        panic!("{refused:?}")
    };
    let reason = Reason::ConditionFailed {
        index: Some(0),
        condition: absent,
    };
    assert_eq!(rejection.reason, reason);
    assert_eq!(rejection.observed.generation, first.writes[0].generation);

    let refused = session.commit(session.draft()).await.unwrap_err();
    let ClientError::FixRequest(rejection) = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!(rejection.reason, Reason::Malformed(Malformed::Empty));
    // A refused request doesn't stop the session.
    session.delete(key("job/1")).await.unwrap();
    assert_eq!(session.get(&key("job/1")).await.unwrap().record, None);
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn domains_are_made_once_and_listed() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    let name = highwater_core::DomainName::new("leader").unwrap();
    let made = client
        .create_domain(&name, &Policy::default())
        .await
        .unwrap();
    let again = client
        .create_domain(&name, &Policy::default())
        .await
        .unwrap_err();
    assert_eq!(again.rejection().unwrap().reason, Reason::DomainExists);
    assert_eq!(client.domain(&name).await.unwrap(), made);
    assert_eq!(
        client.domains().await.unwrap(),
        [served.domain.clone(), made]
    );
    let nowhere = highwater_core::DomainName::new("nowhere").unwrap();
    let unknown = client.domain(&nowhere).await.unwrap_err();
    assert_eq!(unknown.rejection().unwrap().reason, Reason::UnknownDomain);
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_incarnation_is_refused_whatever_the_authority() {
    let served = Served::start(options()).await;
    let session = served.session(1, "a").await;
    let client = served.client().await;
    let own = client.destination();
    let number = own.incarnation.number();
    let mark = IncarnationMark::new(!own.incarnation.mark().get());
    let other = ExpectedDestination {
        incarnation: Incarnation::new(number, mark),
        ..own
    };
    let draft = session
        .draft()
        .put(key("job/1"), value(""))
        .under(served.authority(1, "a"));
    let refused = client
        .commit(&draft.clone().for_destination(other))
        .await
        .unwrap_err();
    let ClientError::LostAuthority(rejection) = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!(rejection.reason, Reason::WrongDestination);
    client
        .judge(&draft.clone().for_destination(own))
        .await
        .unwrap();
    client.commit(&draft.for_destination(own)).await.unwrap();
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_listens_nothing_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let refused = Client::connect(&address, ClientOptions::default())
        .await
        .unwrap_err();
    assert!(
        matches!(refused, ClientError::NotSent(NotSent::Connect(_))),
        "{refused:?}"
    );
    let wrong = Client::connect("not an address", ClientOptions::default())
        .await
        .unwrap_err();
    assert!(
        matches!(wrong, ClientError::NotSent(NotSent::Address { .. })),
        "{wrong:?}"
    );
}
