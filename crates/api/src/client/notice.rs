//! What a server says with an answer about how current it is. Owns the headers as a value, and who is told of them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};

use crate::paths::{AGE_MS, ANSWERED_BY, STORE_TROUBLE, UNRECORDED_MS};

/// What a server says with an answer that may be out of date, or while its store takes no changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Name of the answering server.
    pub server: String,
    /// The time since the server last knew that it has everything that was committed; none while it does.
    pub age: Option<Duration>,
    /// Why no change is accepted; none while they are.
    pub trouble: Option<String>,
    /// The time since the store takes no changes, so that no presence of a node is recorded; none while it does.
    pub unrecorded: Option<Duration>,
}

impl Notice {
    /// The notice in the headers of an answer.
    pub(super) fn read(headers: &HeaderMap) -> Option<Self> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let time = |name: &str| text(name).and_then(|age| age.parse().ok()).map(Duration::from_millis);
        let (age, unrecorded) = (time(AGE_MS), time(UNRECORDED_MS));
        let trouble = text(STORE_TROUBLE).map(str::to_owned);
        let server = text(ANSWERED_BY).unwrap_or_default().to_owned();
        (age.is_some() || trouble.is_some()).then_some(Self { server, age, trouble, unrecorded })
    }
}

/// Is told of each answer, with its notice if it has one.
#[derive(Clone, Default)]
pub(super) struct NoticeHook(Option<Arc<dyn Fn(Option<Notice>) + Send + Sync>>);

impl NoticeHook {
    pub(super) fn new(hook: impl Fn(Option<Notice>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }

    pub(super) fn answered(&self, status: StatusCode, headers: &HeaderMap) {
        let notice = Notice::read(headers);
        // A failure without one does not say that anything is over.
        if let Some(hook) = self.0.as_ref().filter(|_| notice.is_some() || status.is_success()) {
            hook(notice);
        }
    }
}

impl fmt::Debug for NoticeHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NoticeHook").field(&self.0.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use http::HeaderValue;

    use super::*;

    fn read(headers: &[(&'static str, &'static str)]) -> Option<Notice> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_static(value));
        }
        Notice::read(&map)
    }

    #[test]
    fn a_failure_without_a_notice_tells_nothing() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let hook = NoticeHook::new({
            let told = told.clone();
            move |notice: Option<Notice>| told.lock().unwrap().push(notice.is_some())
        });
        let mut full = HeaderMap::new();
        full.insert(STORE_TROUBLE, HeaderValue::from_static("it is full"));
        for (status, headers) in
            [(200, &full), (503, &HeaderMap::new()), (403, &HeaderMap::new()), (503, &full)]
        {
            hook.answered(StatusCode::from_u16(status).unwrap(), headers);
        }
        assert_eq!(*told.lock().unwrap(), [true, true]);
        hook.answered(StatusCode::OK, &HeaderMap::new());
        assert_eq!(*told.lock().unwrap(), [true, true, false]);
    }

    #[test]
    fn an_answer_without_the_headers_is_current_and_one_with_any_has_a_notice() {
        assert_eq!(read(&[(ANSWERED_BY, "cp-1")]), None);
        assert_eq!(read(&[(AGE_MS, "soon")]), None);
        let stale = read(&[(ANSWERED_BY, "cp-1"), (AGE_MS, "42000")]).unwrap();
        assert_eq!((stale.age, stale.trouble), (Some(Duration::from_secs(42)), None));
        assert_eq!(stale.server, "cp-1");
        let full = read(&[(STORE_TROUBLE, "it is full")]).unwrap();
        assert_eq!((full.age, full.trouble.as_deref()), (None, Some("it is full")));
        let unrecorded = read(&[(STORE_TROUBLE, "it is full"), (UNRECORDED_MS, "7000")]).unwrap().unrecorded;
        assert_eq!((full.unrecorded, unrecorded), (None, Some(Duration::from_secs(7))));
    }
}
