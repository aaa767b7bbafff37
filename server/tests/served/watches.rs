//! Watches: whole commits, in order, from a revision on.

use highwater_client::{ClientError, Watch, WatchChange, WatchUpdate};
use highwater_core::{KeyRange, Revision};

use crate::harness::{Served, jobs, key, options, value};

async fn next_commit(watch: &mut Watch) -> (Revision, Vec<WatchChange>) {
    loop {
        if let WatchUpdate::Commit { revision, changes } = watch.next().await.unwrap() {
            return (revision, changes);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_come_whole_and_a_new_watch_goes_on_without_gap_or_repeat() {
    let served = Served::start(options()).await;
    let session = served.session(1, "a").await;
    let client = served.client().await;
    let start = served.store.revision();
    let (all, name) = (KeyRange::all(), jobs());
    let mut watch = client.watch(&name, &all, true, Some(start)).await.unwrap();
    let draft = session
        .draft()
        .put(key("job/1"), value("1"))
        .put(key("job/2"), value("2"));
    let first = session.commit(draft).await.unwrap();
    let second = session.delete(key("job/1")).await.unwrap();

    let (revision, changes) = next_commit(&mut watch).await;
    assert_eq!(revision, first.revision);
    assert_eq!(changes.len(), 3);
    assert!(
        changes
            .iter()
            .any(|change| matches!(change, WatchChange::Fenced(..)))
    );
    assert_eq!(watch.seen(), Some(first.revision));
    drop(watch);

    let mut again = client
        .watch(&name, &all, true, Some(first.revision))
        .await
        .unwrap();
    let (revision, changes) = next_commit(&mut again).await;
    assert_eq!(revision, second.revision);
    assert_eq!(changes, [WatchChange::Deleted(key("job/1"))]);
    assert_eq!(
        again.next().await.unwrap(),
        WatchUpdate::Progress(second.revision)
    );
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_larger_than_a_message_comes_whole() {
    let served = Served::start(options()).await;
    let session = served.session(1, "a").await;
    let client = served.client().await;
    let mut watch = client
        .watch(&jobs(), &KeyRange::all(), false, None)
        .await
        .unwrap();
    let mut draft = session.draft();
    for at in 0..12_u8 {
        draft = draft.put(key([b'j', b'/', at]), value(vec![at; 1 << 20]));
    }
    let receipt = session.commit(draft).await.unwrap();
    let (revision, changes) = next_commit(&mut watch).await;
    assert_eq!(revision, receipt.revision);
    assert_eq!(changes.len(), 12);
    for (at, change) in (0..12_u8).zip(changes) {
        let WatchChange::Put(changed, record) = change else {
            panic!("{at}")
        };
        assert_eq!(changed, key([b'j', b'/', at]));
        assert_eq!(record.value, value(vec![at; 1 << 20]));
    }
    served.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_before_the_history_or_behind_the_end_is_refused() {
    let served = Served::start(options()).await;
    let client = served.client().await;
    let oldest = served.store.status().history_since;
    let before = Revision::new(oldest.get() - 1).filter(|before| *before < oldest);
    if let Some(before) = before {
        let refused = client
            .watch(&jobs(), &KeyRange::all(), false, Some(before))
            .await;
        let error = refused.unwrap_err();
        let ClientError::WatchTooOld {
            requested,
            oldest: told,
        } = error
        else {
            panic!("{error:?}")
        };
        assert_eq!((requested, told), (Some(before), Some(oldest)));
    }
    let behind = served.store.revision().next();
    let refused = client
        .watch(&jobs(), &KeyRange::all(), false, behind)
        .await
        .unwrap_err();
    assert!(matches!(refused, ClientError::ReadFailed(_)), "{refused:?}");
    served.stop().await.unwrap();
}
