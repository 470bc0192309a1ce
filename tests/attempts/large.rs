//! A container that writes two gigabytes.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::support::controller::Controller;
use crate::support::in_namespace;
use crate::support::observe::{logs, until};
use crate::truth::Truth;

#[tokio::test]
async fn two_gigabytes_of_log_leave_their_begin_and_their_end() {
    in_namespace("large", async |client, namespace| {
        let controller = Controller::start(namespace);
        let truth = Truth::new();
        let pods = Api::<Pod>::namespaced(client.clone(), namespace);
        // A small one first: what is needed once (connections, tables of the masking rules) is none of the large one's.
        let mut pod = truth.template("small", "exit 6", "Never");
        pod["metadata"]["name"] = json!("small");
        let pod = serde_json::from_value(pod).unwrap();
        pods.create(&PostParams::default(), &pod).await.unwrap();
        until("the small log", async || logs(&client, namespace).await.pop()).await;
        // 2 GB in lines of 1000 bytes, as fast as it goes.
        let end = "yes \"$(head -c 999 /dev/zero | tr '\\0' x)\" | head -c 2000000000; \
                   echo FATAL: the end of $n; exit 6";
        let mut pod = truth.template("large", end, "Never");
        pod["metadata"]["name"] = json!("large");
        let pod = serde_json::from_value(pod).unwrap();
        pods.create(&PostParams::default(), &pod).await.unwrap();
        until("the start of the Pod", async || (truth.attempts().len() == 2).then_some(())).await;
        let (before, began) = (controller.resident_kib(), Timestamp::now());
        let mut most = before;
        let log = until("its log", async || {
            most = most.max(controller.resident_kib());
            logs(&client, namespace).await.into_iter().find(|log| log.spec.pod == "large")
        })
        .await;
        let nonce = &truth.attempts()[1].nonce;
        let spec = log.spec;
        println!(
            "2 GB of log in {} s: resident set {before} KiB before, at most {most} KiB; kept {} bytes of {} seen, source {:?}",
            Timestamp::now().duration_since(began).as_secs(),
            spec.text.len(),
            spec.bytes,
            spec.source,
        );
        assert!(spec.text.starts_with(&format!("nonce={nonce}")), "the begin is kept: {:?}", spec.text.get(..200));
        assert!(spec.text.ends_with(&format!("FATAL: the end of {nonce}")), "the end is kept");
        assert!(spec.truncated && spec.text.len() <= 16 * 1024, "{}", spec.text.len());
    })
    .await;
}
