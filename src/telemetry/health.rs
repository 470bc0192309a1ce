//! Probes: `/healthz` (the process serves) and `/readyz` (the Pods of the cluster are known).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;

/// State that the probes show.
#[derive(Clone, Debug, Default)]
pub struct Health {
    ready: Arc<AtomicBool>,
}

impl Health {
    /// From now on the process is ready.
    pub fn is_ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }
}

/// Serves the probes for ever.
pub async fn serve(listener: TcpListener, health: Health) {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(health);
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "the server for probes ended");
    }
}

async fn ready(State(health): State<Health>) -> (StatusCode, &'static str) {
    if health.ready.load(Ordering::Relaxed) {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the Pods of the cluster are not known yet\n")
    }
}
