# The node of the test cluster: containerd, kubelet, kube-proxy, DNS; sourced by `up`, not run.
# shellcheck shell=bash

# node_requirements [IMAGE]: what it needs from this machine, asked for before anything is started.
node_requirements() {
  require_commands "by the test cluster's node" containerd=containerd runc=runc iptables=iptables \
    conntrack=conntrack ethtool=ethtool /usr/lib/cni/bridge=containernetworking-plugins /bin/busybox=busybox-static
  [[ -d /sys/fs/cgroup ]] || fail "this machine has no cgroups: no container can run here" \
    "use a cluster that you have: INITWATCH_CLUSTER=existing"
  "$CLUSTER_DIR/images" "$@"
}

# What does not need the API server is done while that starts.
node_prepare() {
  mkdir -p "$STATE"/{containerd,kubelet,cni,pod-logs}
  # A node has no resolver of its own here; a real kubelet demands a file.
  echo "nameserver 127.0.0.1" >"$STATE/resolv.conf"
  configure_network
  configure_containerd
  run containerd containerd -c "$STATE/containerd.toml"
  wait_for "containerd" 30 containerd ctr -a "$CONTAINERD" version
  local image
  for image in "$IMAGES"/{pause,busybox,coredns}.tar; do "$CLUSTER_DIR/load" "$image"; done
}

node_up() {
  cgroup_for_pods
  # A kubelet sets these for the whole machine; `down` puts them back.
  [[ -e $STATE/sysctl ]] ||
    sysctl -e vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops | replace "$STATE/sysctl"
  # Another back-off than last time: Pods survive a restart of the kubelet.
  if configure_kubelet; then stop kubelet; fi
  run kubelet "$KUBERNETES_BIN/kubelet" --kubeconfig="$STATE/kubelet.kubeconfig" --config="$STATE/kubelet.yaml" \
    --root-dir="$STATE/kubelet" --hostname-override=node1 --node-ip="$CLUSTER_IP"
  run kube-proxy "$KUBERNETES_BIN/kube-proxy" --kubeconfig="$ADMIN" --hostname-override=node1 \
    --cluster-cidr="$PODS_CIDR" --proxy-mode=iptables --conntrack-max-per-core=0
  kubectl apply -f "$CLUSTER_DIR/coredns.yaml" >/dev/null
  wait_for "the node" 60 kubelet kubectl wait --for=condition=Ready node/node1 --timeout=1s
  wait_for "CoreDNS" 60 kubelet kubectl -n kube-system wait --for=condition=Available deployment/coredns --timeout=1s
  # Available says that CoreDNS runs; kube-proxy makes its address work a moment later.
  wait_for "an answer of DNS" 30 kube-proxy nsenter --net="/run/netns/$NAMESPACE" \
    /bin/busybox nslookup kubernetes.default.svc.cluster.local "$DNS_IP"
  say "node ready, DNS answers"
}

# A cgroup of the cluster's own above those of its Pods: two kubelets on one machine would end each other's Pods
# as orphans, and `down` finds in it what is left of Pods.
cgroup_for_pods() {
  local hierarchy
  if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then # version 2: one hierarchy
    for hierarchy in cpuset cpu io memory hugetlb pids; do
      echo "+$hierarchy" 2>/dev/null >/sys/fs/cgroup/cgroup.subtree_control || true
    done
    mkdir -p "/sys/fs/cgroup/$NAMESPACE"
  else
    for hierarchy in /sys/fs/cgroup/*/; do mkdir -p "$hierarchy$NAMESPACE" 2>/dev/null || true; done
  fi
}

configure_network() {
  cat >"$STATE/cni/10-bridge.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "$NAMESPACE", "plugins": [
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
  # Not in /run/netns, which is the machine's: Pods' network namespaces go with the state folder.
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$STATE/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
TOML
}

# configure_kubelet: 0 if that changed the configuration.
configure_kubelet() {
  local backoff=${INITWATCH_BACKOFF-5s}
  {
    cat <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, x509: {clientCAFile: $STATE/pki/ca.crt}, webhook: {enabled: true}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
cgroupRoot: /$NAMESPACE
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
    [[ -z $backoff ]] || cat <<YAML
featureGates: {KubeletCrashLoopBackOffMax: true}
crashLoopBackOff: {maxContainerRestartPeriod: $backoff}
YAML
  } | replace "$STATE/kubelet.yaml"
}
