//! Probes: `/healthz` (the process serves) and `/readyz` (the Pods of the cluster are known); and `/metrics`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::routing::get;
use tokio::net::TcpListener;

use super::metrics::Metrics;

/// State that the probes show.
#[derive(Clone, Debug, Default)]
pub struct Health {
    ready: Arc<AtomicBool>,
}

impl Health {
    /// Whether the process sees what it has to see.
    pub fn is_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }
}

/// What OpenMetrics text is called (RFC of OpenMetrics 1.0).
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves the probes and the metrics for ever.
pub async fn serve(listener: TcpListener, health: Health, metrics: Metrics) {
    let figures = move || async move { ([(header::CONTENT_TYPE, OPEN_METRICS)], metrics.render()) };
    let router = Router::new()
        .route("/metrics", get(figures))
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
        (StatusCode::SERVICE_UNAVAILABLE, "the Pods of the cluster are not known, or not any more\n")
    }
}
