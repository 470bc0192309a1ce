# The node of the test cluster: containerd, kubelet, kube-proxy, DNS; sourced by `up`, not run.
# shellcheck shell=bash

node_up() {
  local other
  for other in /tmp/initwatch-cluster-*/kubelet.pid "${TMPDIR:-/tmp}"/initwatch-cluster-*/kubelet.pid; do
    [[ -e $other && $(dirname "$other") != "$STATE" ]] || continue
    STATE=$(dirname "$other") is_running kubelet &&
      fail "another cluster has a node already: $(dirname "$other")" "end it first: INITWATCH_CLUSTER_ID=... tests/cluster/down"
  done
  require_commands "by the test cluster's node" containerd=containerd runc=runc iptables=iptables \
    conntrack=conntrack ethtool=ethtool /usr/lib/cni/bridge=containernetworking-plugins /bin/busybox=busybox-static
  "$CLUSTER_DIR/images"
  mkdir -p "$STATE"/{containerd,kubelet,cni,pod-logs}
  # A node has no resolver of its own here; a real kubelet demands a file.
  echo "nameserver 127.0.0.1" >"$STATE/resolv.conf"
  configure_network
  configure_containerd
  configure_kubelet
  run containerd containerd -c "$STATE/containerd.toml"
  wait_for containerd 30 "$STATE/log/containerd.log" ctr -a "$CONTAINERD" version
  local image
  for image in "$IMAGES"/{pause,busybox,coredns}.tar; do "$CLUSTER_DIR/load" "$image"; done
  run kubelet "$KUBERNETES_BIN/kubelet" --kubeconfig="$STATE/kubelet.kubeconfig" --config="$STATE/kubelet.yaml" \
    --root-dir="$STATE/kubelet" --hostname-override=node1 --node-ip="$CLUSTER_IP"
  run kube-proxy "$KUBERNETES_BIN/kube-proxy" --kubeconfig="$ADMIN" --hostname-override=node1 \
    --cluster-cidr="$PODS_CIDR" --proxy-mode=iptables --conntrack-max-per-core=0
  kubectl apply -f "$CLUSTER_DIR/coredns.yaml" >/dev/null
  wait_for "the node" 60 "$STATE/log/kubelet.log" kubectl wait --for=condition=Ready node/node1 --timeout=1s
  wait_for DNS 60 "$STATE/log/kubelet.log; kubectl -n kube-system describe pods" \
    kubectl -n kube-system wait --for=condition=Available deployment/coredns --timeout=1s
  # Available says that CoreDNS runs; kube-proxy makes its address work a moment later.
  wait_for "an answer of DNS" 30 "$STATE/log/kube-proxy.log" nsenter --net="/run/netns/$NAMESPACE" \
    /bin/busybox nslookup kubernetes.default.svc.cluster.local "$DNS_IP"
  say "node ready, DNS answers"
}

configure_network() {
  cat >"$STATE/cni/10-bridge.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "initwatch", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true, "ipam": {
    "type": "host-local", "dataDir": "$STATE/cni-addresses",
    "ranges": [[{"subnet": "$PODS_CIDR"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
}

configure_containerd() {
  cat >"$STATE/containerd.toml" <<TOML
version = 2
root = "$STATE/containerd/root"
state = "$STATE/containerd/state"
[grpc]
  address = "$CONTAINERD"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$STATE/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
TOML
}

configure_kubelet() {
  cat >"$STATE/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, x509: {clientCAFile: $STATE/pki/ca.crt}, webhook: {enabled: true}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
clusterDNS: [$DNS_IP]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix://$CONTAINERD
resolvConf: $STATE/resolv.conf
podLogsDir: $STATE/pod-logs
# A developer's disk is often nearly full; that is no reason to evict test Pods.
evictionHard: {nodefs.available: "1%", imagefs.available: "1%", memory.available: "100Mi"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
YAML
  local backoff=${INITWATCH_BACKOFF-5s}
  [[ -z $backoff ]] || cat >>"$STATE/kubelet.yaml" <<YAML
featureGates: {KubeletCrashLoopBackOffMax: true}
crashLoopBackOff: {maxContainerRestartPeriod: $backoff}
YAML
}
