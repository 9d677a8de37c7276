//! What a server listens on.

use bellwether_rt::tasks::Tasks;
use tokio::net::TcpListener;

use crate::http::{self, AppState};

/// The sockets of a server.
pub(super) struct Sockets {
    pub(super) listener: TcpListener,
    pub(super) plain: Option<TcpListener>,
}

impl Sockets {
    /// Serves every route on them.
    pub(super) fn serve(self, app: &AppState, tasks: &Tasks) {
        let router = http::router(app);
        let closed = app.traffic.metrics.closed.clone();
        let transport = http::Transport {
            tls: Some(app.identity.pki.follow()),
            clock: app.clock.clone(),
            closed,
            load: http::LoadLog::default(),
        };
        tasks.spawn("https", http::serve(self.listener, transport.clone(), router.clone(), tasks.child()));
        if let Some(plain) = self.plain {
            let transport = http::Transport { tls: None, ..transport };
            tasks.spawn("http", http::serve(plain, transport, router, tasks.child()));
        }
    }
}
