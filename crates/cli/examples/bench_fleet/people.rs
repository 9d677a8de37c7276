//! People who look at the fleet meanwhile: on a thread of their own, so that what they wait for is the server and not the
//! crowd beside them. Each call of every second one makes a connection of its own, as the command line does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use bellwether_api::client::{Access, Client};
use futures_util::future::join_all;

use super::crowd::now;
use super::place::NAMESPACE;

/// How many look at the same time.
const PEOPLE: usize = 4;

/// How long each rests between two looks.
const REST: Duration = Duration::from_millis(20);

/// People who look.
pub(crate) struct People {
    stop: Arc<AtomicBool>,
    looking: JoinHandle<Result<Vec<Look>>>,
}

/// How long one look took, and whether it was answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) took: Duration,
    pub(crate) answered: bool,
}

impl People {
    /// They begin.
    pub(crate) fn begin(access: Access) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let until = stop.clone();
        let looking = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let people = (0..PEOPLE).map(|person| look(&access, person % 2 == 0, &until));
            let looks = runtime.block_on(join_all(people));
            looks.into_iter().try_fold(Vec::new(), |mut all, looks| {
                all.extend(looks?);
                Ok(all)
            })
        });
        Self { stop, looking }
    }

    /// They end, and say how it was.
    pub(crate) fn end(self) -> Result<Vec<Look>> {
        self.stop.store(true, Ordering::Relaxed);
        self.looking.join().ok().context("people fell over")?
    }
}

async fn look(access: &Access, keeps: bool, stop: &AtomicBool) -> Result<Vec<Look>> {
    let mut looks = Vec::new();
    let kept = Client::new(access)?;
    while !stop.load(Ordering::Relaxed) {
        let client = if keeps { kept.clone() } else { Client::new(access)? };
        let begun = now();
        let answered = client.overview(NAMESPACE).await.is_ok();
        looks.push(Look { took: begun.elapsed(), answered });
        tokio::time::sleep(REST).await;
    }
    Ok(looks)
}
