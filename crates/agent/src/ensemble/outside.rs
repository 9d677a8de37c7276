//! A store of etcd that something else founded, read and changed through a member that serves already. None of its members has TLS.

use std::collections::BTreeSet;

use bellwether_core::local::member::Standing;
use bellwether_core::local::member::change::ChangeStep;
use bellwether_core::records::ensemble_adoption::AdoptionOrder;
use bellwether_core::records::member::Membership;
use bellwether_core::records::probes::ShardRole;
use bellwether_rt::observed;

use super::etcd::Etcd;
use super::etcd_calls::{Initial, PATIENCE, make_at, membership, read_from_quorum};
use crate::probe::etcd::{EtcdView, view};

/// The store, as a member of it told of it.
#[derive(Debug)]
pub(super) struct Outside {
    /// Where that member serves clients.
    authority: String,
    view: EtcdView,
    /// The members, with whether they answer.
    pub(super) membership: Membership,
}

impl Outside {
    /// Reads the store through one of its endpoints, or of the members that have these peer URLs. While its id is not known, all endpoints have to
    /// answer, and to be of one store. The error fits after "waits for ".
    pub(super) async fn read(etcd: &Etcd, order: &AdoptionOrder, peers: &[String]) -> Result<Self, String> {
        let (authority, view) = match &order.cluster_id {
            None => first(order).await?,
            Some(cluster_id) => any(&sources(etcd, order, peers), cluster_id).await?,
        };
        let membership = membership(&view, None).await;
        Ok(Self { authority, view, membership })
    }

    /// Why no member of this node can be added: one that is run by something else has its address. Fits after "waits for ".
    pub(super) fn occupied(&self, etcd: &Etcd) -> Option<String> {
        let own = etcd.peer_url();
        let mut named =
            self.membership.members.values().filter(|member| member.address.as_deref() == Some(&*own));
        let named = named.find_map(|member| member.name.clone().filter(|name| name != etcd.name()))?;
        Some(format!(
            "its address {own}, which member {named} of the store has, that something else runs: give the ensemble other ports"
        ))
    }

    /// Makes one step of a change. The error fits after "cannot ".
    pub(super) async fn make(&self, step: &ChangeStep) -> Result<(), String> {
        make_at(&self.authority, None, step).await
    }

    /// The members that this one is started with, once the store has it. The error fits after "cannot ".
    pub(super) fn initial(&self, etcd: &Etcd) -> Result<Initial, String> {
        let own = etcd.peer_url();
        let mut initial = Initial::new();
        for member in &self.view.listed {
            let is_own = member.peer_urls.contains(&own);
            // All that counts is that no two have the same.
            let name = if is_own { etcd.name().to_owned() } else { format!("other.{}", member.id) };
            initial.extend(member.peer_urls.iter().map(|url| (name.clone(), url.clone())));
        }
        let is_there = initial.iter().any(|(name, _)| name == etcd.name());
        is_there
            .then_some(initial)
            .ok_or_else(|| format!("join the store: it does not have {own} among its members"))
    }
}

/// What the other members of a store that was adopted say of one that does not run.
pub(super) async fn standing(
    etcd: &Etcd,
    order: &AdoptionOrder,
    peers: &[String],
    store_id: Option<&String>,
) -> Standing {
    let own = etcd.peer_url();
    if !peers.is_empty() && peers.iter().all(|url| *url == own) {
        return Standing::Alone;
    }
    let Some(cluster_id) = &order.cluster_id else { return Standing::Unknown };
    let mut asked = sources(etcd, order, peers);
    asked.remove(&etcd.client().to_string());
    let Ok((_, view)) = any(&asked, cluster_id).await else { return Standing::Unknown };
    let is_own = |id: &String, urls: &[String]| store_id.map_or_else(|| urls.contains(&own), |of| of == id);
    match view.listed.iter().any(|member| is_own(&member.id, &member.peer_urls)) {
        true => Standing::Listed,
        false => Standing::NotListed,
    }
}

/// Has this member lead instead of one that is to be removed: that one is told to. The error fits after "cannot ".
pub(super) async fn take_lead(
    etcd: &Etcd,
    order: &AdoptionOrder,
    (from, to): (&String, &String),
) -> Result<(), String> {
    let own = observed::timeout(PATIENCE, view(&etcd.client().to_string(), None)).await;
    let listed = own.ok().and_then(Result::ok).map(|view| view.listed).unwrap_or_default();
    let leader = listed.into_iter().filter(|member| member.id == *from).flat_map(|member| member.client_urls);
    let told = leader.filter_map(|url| Some(url.strip_prefix("http://")?.to_owned()));
    let endpoints = order.endpoints.iter().map(|endpoint| endpoint.authority().to_owned());
    let mut last = format!("have {to} lead: {from} does not answer clients");
    for authority in told.chain(endpoints) {
        // An address such as localhost is that of another one here.
        let Ok(Ok(view)) = observed::timeout(PATIENCE, view(&authority, None)).await else { continue };
        let is_leader = view.facts.member_id.as_ref() == Some(from)
            && view.facts.shards.values().any(|shard| shard.role == ShardRole::Primary);
        if is_leader {
            match make_at(&authority, None, &ChangeStep::Transfer(to.clone())).await {
                Ok(()) => return Ok(()),
                Err(error) => last = error,
            }
        }
    }
    Err(last)
}

/// Where members of the store may serve clients: those that were named, and those of the ensemble, which all have the same port.
fn sources(etcd: &Etcd, order: &AdoptionOrder, peers: &[String]) -> BTreeSet<String> {
    let endpoints = order.endpoints.iter().map(|endpoint| endpoint.authority().to_owned());
    endpoints.chain(peers.iter().filter_map(|url| etcd.client_of(url))).collect()
}

/// All endpoints answer, and are of one store: the first of them.
async fn first(order: &AdoptionOrder) -> Result<(String, EtcdView), String> {
    let mut found: Option<(String, EtcdView)> = None;
    for endpoint in &order.endpoints {
        let authority = endpoint.authority();
        let view = whole(authority).await?;
        match &found {
            None => found = Some((authority.to_owned(), view)),
            Some((other, of)) if of.facts.cluster_id != view.facts.cluster_id => {
                return Err(format!(
                    "endpoints of one store: http://{other} is of the store with id {}, and {endpoint} of the one with id {}",
                    of.facts.cluster_id.as_deref().unwrap_or("-"),
                    view.facts.cluster_id.as_deref().unwrap_or("-")
                ));
            }
            Some(_) => {}
        }
    }
    found.ok_or_else(|| "an endpoint of the store that it adopts".to_owned())
}

/// The first that answers and is of this store.
async fn any(sources: &BTreeSet<String>, cluster_id: &String) -> Result<(String, EtcdView), String> {
    let mut last = "an endpoint of the store that it adopted".to_owned();
    for authority in sources {
        match whole(authority).await {
            Ok(view) if view.facts.cluster_id.as_ref() == Some(cluster_id) => {
                return Ok((authority.clone(), view));
            }
            Ok(view) => {
                last = format!(
                    "the store with id {cluster_id} that it adopted: http://{authority} is of the one with id {}",
                    view.facts.cluster_id.as_deref().unwrap_or("-")
                );
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// What a member tells that reads from a quorum. The error fits after "waits for ".
async fn whole(authority: &str) -> Result<EtcdView, String> {
    let asked = async {
        read_from_quorum(authority, None).await?;
        view(authority, None).await
    };
    let asked = observed::timeout(PATIENCE, asked).await;
    let late = |_| Err(format!("http://{authority}: no answer within {}s", PATIENCE.as_secs()));
    let failed = asked.map_or_else(late, |asked| asked.map_err(|error| format!("http://{error}")));
    failed.map_err(|error| {
        let hint = match error.contains("user name is empty") || error.contains("permission denied") {
            true => {
                "; a store that asks for users cannot be adopted: found a new ensemble from a snapshot of it, or end its authentication with \
                 etcdctl auth disable"
            }
            false => "",
        };
        format!("the store that it adopts, which does not answer: {error}{hint}")
    })
}
