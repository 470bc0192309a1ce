# Shared by the scripts of this folder; sourced, not run.
# shellcheck shell=bash
# shellcheck disable=SC2034  # the scripts that source this use what they need

CLUSTER_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Everything that is built once lives outside the repository, so that `git clean` and a fresh clone keep it.
CACHE=${INITWATCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/initwatch}

# The version of a module as its go.mod pins it: the one place where versions are named.
pinned() { sed -n "s|^require $2 ||p" "$CLUSTER_DIR/programs/$1/go.mod"; }
KUBERNETES_VERSION=$(pinned kubernetes k8s.io/kubernetes)
ETCD_VERSION=$(pinned etcd go.etcd.io/etcd/server/v3)
COREDNS_VERSION=$(pinned coredns github.com/coredns/coredns)

KUBERNETES_BIN=$CACHE/programs/kubernetes-$KUBERNETES_VERSION
ETCD_BIN=$CACHE/programs/etcd-$ETCD_VERSION
COREDNS_BIN=$CACHE/programs/coredns-$COREDNS_VERSION
IMAGES=$CACHE/images

STARTED=$SECONDS
say() { printf '%4ds  %s\n' $((SECONDS - STARTED)) "$*" >&2; }
fail() {
  printf 'error: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '       %s\n' "$line" >&2; done
  exit 1
}

# require_commands PURPOSE COMMAND=DEBIAN_PACKAGE...
# Installs what is missing where that is possible (Debian and root); else names the command to run.
require_commands() {
  local purpose=$1 pair missing=()
  shift
  for pair in "$@"; do
    # Package names without a command (busybox-static, CNI plugins) are given as a path.
    case ${pair%%=*} in
    /*) [[ -e ${pair%%=*} ]] || missing+=("${pair##*=}") ;;
    *) command -v "${pair%%=*}" >/dev/null || missing+=("${pair##*=}") ;;
    esac
  done
  ((${#missing[@]})) || return 0
  if command -v apt-get >/dev/null && [[ $(id -u) = 0 ]]; then
    say "installing ${missing[*]} ($purpose)"
    mkdir -p "$CACHE"
    # Lists that were fetched before may be old or absent; a failed update shows in the install that follows.
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"; } \
      >"$CACHE/apt.log" 2>&1 ||
      fail "could not install ${missing[*]} (needed $purpose)" "the log is $CACHE/apt.log"
  else
    fail "missing: ${missing[*]} (needed $purpose)" \
      "install with: sudo apt-get install ${missing[*]}"
  fi
}

# --- the cluster's own place -------------------------------------------------------------------------

# Several clusters can stand side by side (0-9), told apart by a number; only one of them can have a node,
# since Pod addresses and CNI namespaces are the machine's.
CLUSTER_ID=${INITWATCH_CLUSTER_ID:-0}
STATE=${TMPDIR:-/tmp}/initwatch-cluster-$CLUSTER_ID
ADMIN=$STATE/admin.kubeconfig
NAMESPACE=initwatch$CLUSTER_ID
# 198.18.0.0/15 is reserved for tests (RFC 2544): no network that matters uses it.
HOST_IP=198.18.$CLUSTER_ID.1
CLUSTER_IP=198.18.$CLUSTER_ID.2
PODS_CIDR=198.18.64.0/20
SERVICES_CIDR=198.19.0.0/16
DNS_IP=198.19.0.10
CONTAINERD=$STATE/containerd/containerd.sock

kubectl() { "$KUBERNETES_BIN/kubectl" --kubeconfig "$ADMIN" "$@"; }
containers() { ctr -a "$CONTAINERD" -n k8s.io "$@"; }

# wait_for WHAT SECONDS LOG COMMAND...: polls a condition; says what did not come, and where to look.
wait_for() {
  local what=$1 end=$((SECONDS + $2)) log=$3
  shift 3
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || fail "$what did not come in time" "look at $log"
    sleep 0.2
  done
}

# A process is ours if it still has the start time that was written down with its number: numbers come again.
# Prints nothing for a zombie: it has ended, only its parent has not asked yet.
start_time() {
  local stat fields
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
  # What stands in brackets is the program's name, which may hold anything.
  read -ra fields <<<"${stat##*) }"
  [[ ${fields[0]} = Z ]] || echo "${fields[19]}"
}
is_running() {
  local pid started
  read -r pid started 2>/dev/null <"$STATE/$1.pid" || return 1
  [[ -n $started && $(start_time "$pid") = "$started" ]]
}

# run NAME COMMAND...: starts a part of the cluster in its network namespace, unless it runs.
run() {
  local name=$1 pid
  shift
  is_running "$name" && return
  # `ip netns exec` would mount another /sys and hide the cgroups.
  # The lock's descriptor is closed, or each part would hold the lock as long as it runs.
  setsid nsenter --net="/run/netns/$NAMESPACE" "$@" >"$STATE/log/$name.log" 2>&1 </dev/null 8>&- 9>&- &
  pid=$!
  echo "$pid $(start_time "$pid")" >"$STATE/$name.pid"
}

# stop NAME [SIGNAL]: ends a part that `run` started.
stop() {
  local name=$1 signal=${2:-TERM} pid
  if is_running "$name"; then
    read -r pid _ <"$STATE/$name.pid"
    kill -s "$signal" "$pid" 2>/dev/null || true
    for _ in $(seq 50); do is_running "$name" || break; sleep 0.1; done
    if is_running "$name"; then kill -s KILL "$pid" 2>/dev/null || true; fi
  fi
  rm -f "$STATE/$name.pid"
}
