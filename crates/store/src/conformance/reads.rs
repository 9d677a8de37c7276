//! Laws of reading: now, in the past, in pages.

use std::time::Duration;

use bytes::Bytes;

use super::{StoreUnderTest, commit, delete, dump, next, put, text};
use crate::{Keys, MAX_PAGE_BYTES, Op, Page, Range, Revision, StoreError};

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A page names its revision, and reading at that revision gives the same page for ever after.
pub async fn a_page_shows_one_moment(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    commit(&store, [put("a", "1"), put("b", "1")]).await;
    let page = store.list(Range::all(), None, 10).await.unwrap();
    assert_eq!(page.revision, Revision(1));
    commit(&store, [put("a", "2"), delete("b"), put("c", "2")]).await;
    commit(&store, [put("b", "3")]).await;
    assert_eq!(store.list(Range::all(), Some(Revision(1)), 10).await.unwrap(), page);
    let at_two = dump(&store, Range::all(), Some(Revision(2))).await;
    assert_eq!(at_two, pairs(&[("a", "2"), ("c", "2")]));
    assert_eq!(dump(&store, Range::all(), Some(Revision(0))).await, pairs(&[]));
    let at_three = dump(&store, Range::all(), None).await;
    assert_eq!(at_three, pairs(&[("a", "2"), ("b", "3"), ("c", "2")]));
    let history = store.list(Range::one("b"), Some(Revision(2)), 1).await.unwrap();
    assert_eq!(history, Page { entries: vec![], revision: Revision(2), more: false });
}

/// Pages read at one revision join to the whole of that moment, whatever is written between them.
pub async fn pages_join_to_the_whole(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let keys: Vec<_> = (0..25).map(|n| format!("k{n:02}")).collect();
    for key in &keys {
        commit(&store, [put(key, "old")]).await;
    }
    let (mut range, mut at, mut seen) = (Range::prefix("k"), None, Vec::new());
    loop {
        let page = store.list(range.clone(), at, 10).await.unwrap();
        assert!(page.entries.len() <= 10);
        at = Some(page.revision);
        seen.extend(page.entries.iter().map(|entry| (text(&entry.key), text(&entry.value))));
        let Some(last) = page.entries.last().filter(|_| page.more) else { break };
        range = range.after(&last.key);
        commit(&store, [delete("k24"), put("k23", "new"), put("k225", "new")]).await;
    }
    let expected: Vec<_> = keys.into_iter().map(|key| (key, "old".to_owned())).collect();
    assert_eq!(seen, expected);
}

/// A range holds its start, not its end; `more` is true only if there is more.
pub async fn a_range_has_sharp_edges(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let keys: [&[u8]; 6] = [b"a", b"a\0", b"a\xff", b"b", b"\xff", b"\xff\xff"];
    let ops: Vec<_> = keys
        .iter()
        .map(|key| Op::Put { key: Bytes::from_static(key), value: Bytes::new(), lease: None })
        .collect();
    commit(&store, ops).await;
    let count = async |range| store.list(range, None, 100).await.unwrap().entries.len();
    assert_eq!(count(Range::all()).await, 6);
    assert_eq!(count(Range::one("a")).await, 1);
    assert_eq!(count(Range::prefix("a")).await, 3);
    assert_eq!(count(Range::prefix(&b"\xff"[..])).await, 2);
    assert_eq!(count(Range { start: "a".into(), end: "b".into() }).await, 3);
    assert_eq!(count(Range { start: "b".into(), end: "b".into() }).await, 0);
    assert_eq!(count(Range { start: "b".into(), end: "a".into() }).await, 0);
    assert_eq!(count(Range { start: "b".into(), end: Bytes::new() }).await, 3);
    let exactly = store.list(Range::all(), None, 6).await.unwrap();
    let fewer = store.list(Range::all(), None, 5).await.unwrap();
    assert_eq!((exactly.more, fewer.more, fewer.entries.len()), (false, true, 5));
}

/// Nothing was written: nothing is there, at revision 0.
pub async fn an_empty_store_reads_as_empty(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let page = store.list(Range::all(), None, 10).await.unwrap();
    assert_eq!(page, Page { entries: vec![], revision: Revision(0), more: false });
    assert_eq!(store.get("a".into()).await.unwrap(), None);
    assert_eq!(store.list(Range::all(), Some(Revision(0)), 10).await.unwrap(), page);
}

/// Reads below the compacted revision and beyond the newest are distinguished from absence.
pub async fn the_past_is_read_until_it_is_compacted(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    for n in 1..=5 {
        commit(&store, [put("a", &n.to_string())]).await;
    }
    assert_eq!(store.compact(Revision(6)).await, Err(StoreError::Future { current: Revision(5) }));
    store.compact(Revision(3)).await.unwrap();
    store.compact(Revision(2)).await.unwrap();
    let read = async |revision| store.list(Range::all(), Some(Revision(revision)), 10).await;
    assert_eq!(read(2).await, Err(StoreError::Compacted { oldest: Revision(3) }));
    assert_eq!(read(6).await, Err(StoreError::Future { current: Revision(5) }));
    assert_eq!(dump(&store, Range::all(), Some(Revision(3))).await, pairs(&[("a", "3")]));
    store.compact(Revision(5)).await.unwrap();
    assert_eq!(read(4).await, Err(StoreError::Compacted { oldest: Revision(5) }));
    assert_eq!(dump(&store, Range::all(), Some(Revision(5))).await, pairs(&[("a", "5")]));
    assert_eq!(commit(&store, [put("a", "6")]).await, Revision(6));
}

/// A page of large values ends early and says that there is more.
pub async fn a_page_ends_at_its_bytes(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let value = Bytes::from(vec![7; 1_000_000]);
    let all = MAX_PAGE_BYTES / value.len() + 3;
    for n in 0..all {
        let op = Op::Put { key: format!("k{n:02}").into(), value: value.clone(), lease: None };
        commit(&store, [op]).await;
    }
    let page = store.list(Range::all(), None, usize::MAX).await.unwrap();
    assert!(page.more && !page.entries.is_empty() && page.entries.len() < all);
    let last = page.entries.last().unwrap().key.clone();
    let rest = store.list(Range::all().after(&last), Some(page.revision), usize::MAX).await.unwrap();
    assert_eq!((page.entries.len() + rest.entries.len(), rest.more), (all, false));
}

/// Keys are what pages of the same moment have, in the same order, each with its last put, now and in the past.
pub async fn keys_are_those_of_the_pages(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    assert_eq!(
        store.keys(Range::all(), None, 10).await.unwrap(),
        Keys { keys: vec![], revision: Revision(0), more: false }
    );
    for n in 0..25 {
        commit(&store, [put(&format!("k{n:02}"), "old")]).await;
    }
    commit(&store, [delete("k24"), put("k23", "new"), put("k225", "new"), put("other", "")]).await;
    for at in [None, Some(Revision(25)), Some(Revision(7)), Some(Revision(0))] {
        let (mut range, mut seen) = (Range::prefix("k"), Vec::new());
        loop {
            let keys = store.keys(range.clone(), at, 10).await.unwrap();
            let page = store.list(range.clone(), at, 10).await.unwrap();
            assert_eq!(keys, Keys::from(page));
            seen.extend(keys.keys.iter().cloned());
            let Some((last, _)) = keys.keys.last().filter(|_| keys.more) else { break };
            range = range.after(last);
        }
        let all = store.list(Range::prefix("k"), at, 100).await.unwrap();
        assert_eq!(seen, Keys::from(all).keys, "{at:?}");
    }
    assert_eq!(store.keys(Range::none(), None, 10).await.unwrap().revision, Revision(26));
    store.compact(Revision(20)).await.unwrap();
    let read = async |revision| store.keys(Range::all(), Some(Revision(revision)), 10).await;
    assert_eq!(read(7).await, Err(StoreError::Compacted { oldest: Revision(20) }));
    assert_eq!(read(27).await, Err(StoreError::Future { current: Revision(26) }));
    assert!(store.keys(Range::all(), None, 0).await.is_err(), "as pages of no entries are");
}

/// The present is at the newest commit, whatever that was, and asking for it commits nothing.
pub async fn the_present_is_past_every_commit(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    assert_eq!(store.now().await.unwrap(), Revision(0));
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    commit(&store, [put("a", "1"), put("b", "1")]).await;
    assert_eq!(store.now().await.unwrap(), Revision(1));
    commit(&store, [delete("b")]).await;
    assert_eq!(store.now().await.unwrap(), Revision(2));
    let lease = store.grant(Duration::from_secs(60)).await.unwrap();
    commit(&store, [Op::Put { key: "c".into(), value: "1".into(), lease: Some(lease) }]).await;
    store.revoke(lease).await.unwrap();
    let now = store.now().await.unwrap();
    assert_eq!((now, store.now().await.unwrap()), (Revision(4), now));
    let mut seen = Revision(0);
    while seen < now {
        seen = next(&mut watch).await.unwrap().revision;
    }
    assert_eq!(seen, now);
}
