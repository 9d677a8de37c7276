//! What a route accepts: the size of its body, query parameters, and the headers that make a change conditional. Anything else is refused,
//! for every route in one place.

use axum::extract::{Query, Request};
use bellwether_api::paths::CONSISTENCY;
use bellwether_api::shape::ShapeError;
use bellwether_core::access::RequiredAccess;
use http::Method;
use http::header::{IF_MATCH, IF_NONE_MATCH};

use super::admission::may_wait;
use super::list::LIST_PARAMS;
use super::problem::Failure;

/// What a route accepts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accepted {
    /// Its query parameters, besides `consistency` and those of lists.
    pub(super) query: &'static [&'static str],
    pub(super) is_list: bool,
    /// Whether it changes something only at the revision that `If-Match` or `If-None-Match` names.
    pub(super) is_conditional: bool,
    /// Whether it is answered by a node.
    pub(super) asks_node: bool,
    /// Most bytes of its body.
    pub(super) largest_body: usize,
}

impl Accepted {
    /// Whether the server answers a request by itself and at once: how long that takes is its own doing.
    pub(super) fn is_immediate(&self, request: &Request) -> bool {
        !self.asks_node && !may_wait(request)
    }

    /// Refuses what a request has and the route would not read: it would be answered as if it had been obeyed.
    pub(super) fn check(&self, need: RequiredAccess, request: &Request) -> Result<(), Failure> {
        self.check_conditions(request)?;
        // Probes and the page may be asked with anything.
        if need == RequiredAccess::Open { Ok(()) } else { self.check_query(request) }
    }

    fn check_conditions(&self, request: &Request) -> Result<(), Failure> {
        if *request.method() == Method::GET || *request.method() == Method::HEAD {
            return Ok(());
        }
        for (header, name) in [(IF_MATCH, "If-Match"), (IF_NONE_MATCH, "If-None-Match")] {
            let count = request.headers().get_all(header).iter().count();
            if count > 0 && !self.is_conditional {
                let reason = "not supported here, and nothing was changed; leave the header out";
                return Err(ShapeError::at(name, reason).into());
            }
            if count > 1 {
                return Err(ShapeError::at(name, format!("sent {count} times; send it once")).into());
            }
        }
        Ok(())
    }

    fn check_query(&self, request: &Request) -> Result<(), Failure> {
        if request.uri().query().is_none_or(str::is_empty) {
            return Ok(());
        }
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
        let pairs = pairs.map_err(|error| Failure::from(ShapeError::at("the query", error)))?;
        let lists: &[&str] = if self.is_list { &LIST_PARAMS } else { &[] };
        let known = || lists.iter().chain(self.query).copied();
        let mut names = pairs.0.iter().map(|(name, _)| name.as_str());
        let Some(unknown) = names.find(|name| *name != CONSISTENCY && !known().any(|it| it == *name)) else {
            return Ok(());
        };
        let list: Vec<&str> = known().collect();
        let reason = match list.as_slice() {
            [] => "not a parameter of this route, which has none".to_owned(),
            list => format!("not a parameter of this route; known: {}", list.join(", ")),
        };
        Err(ShapeError::at(unknown, reason).into())
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn a_condition_is_sent_once() {
        let accepted =
            Accepted { query: &[], is_list: false, is_conditional: true, asks_node: false, largest_body: 0 };
        let check = |method: Method, count: usize| {
            let builder = Request::builder().method(method).uri("/x");
            let builder = (0..count).fold(builder, |builder, _| builder.header(IF_MATCH, "\"1\""));
            accepted.check(RequiredAccess::Token, &builder.body(Body::empty()).unwrap()).is_ok()
        };
        assert!(check(Method::PUT, 1) && !check(Method::PUT, 2) && check(Method::GET, 2));
    }
}
