//! The controller as it is deployed.

use std::path::Path;

use tokio::process::Command;
use tokio::sync::OnceCell;

static DEPLOYED: OnceCell<()> = OnceCell::const_new();

/// Deploys the controller, once for all tests of this run, and waits until it is ready.
pub async fn controller() {
    DEPLOYED.get_or_init(deploy).await;
}

async fn deploy() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node/deployment");
    kubectl(&["apply", "--server-side", "--force-conflicts", "-k", folder.to_str().unwrap()]).await;
    // The tag is always the same: what was loaded since the last run is taken up by new Pods only.
    kubectl(&["-n", "initwatch-system", "rollout", "restart", "deployment/initwatch"]).await;
    kubectl(&["-n", "initwatch-system", "rollout", "status", "deployment/initwatch", "--timeout=60s"]).await;
}

/// Runs kubectl on the test cluster and returns what it prints. `tests/run` puts the cluster's own on the PATH.
pub async fn kubectl(arguments: &[&str]) -> String {
    let output = Command::new("kubectl")
        .args(arguments)
        .env("KUBECONFIG", crate::support::kubeconfig())
        .output()
        .await
        .expect("kubectl; run `make test`, which brings it");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "kubectl {arguments:?}: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}
