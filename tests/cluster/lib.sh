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

# require_compiler: Rust links with `cc`. Debian's gcc only recommends the C library's headers and start files, so
# its presence proves little.
require_compiler() {
  echo 'int main(void) { return 0; }' | cc -x c -o /dev/null - 2>/dev/null && return
  require_commands "to link Rust programs" cc=gcc /usr/include/stdio.h=libc6-dev
}

# --- the cluster's own place -------------------------------------------------------------------------

# use_cluster NUMBER: several clusters can stand side by side (0-9), each with its own addresses, names and state.
use_cluster() {
  [[ $1 =~ ^[0-9]$ ]] || fail "the cluster's number must be one digit, not \"$1\""
  CLUSTER_ID=$1
  export INITWATCH_CLUSTER_ID=$1 # for the scripts that this one calls
  STATE=${TMPDIR:-/tmp}
  STATE=${STATE%/}/initwatch-cluster-$1
  ADMIN=$STATE/admin.kubeconfig
  CONTAINERD=$STATE/containerd/containerd.sock
  # Name of the network namespace, of the CNI network and of the cgroup above all Pods.
  NAMESPACE=initwatch$1
  # 198.18.0.0/15 is reserved for tests (RFC 2544): no network that matters uses it.
  HOST_IP=198.18.$1.1
  CLUSTER_IP=198.18.$1.2
}
# These exist in the network namespaces only, so that all clusters can have the same.
PODS_CIDR=198.18.64.0/20
SERVICES_CIDR=198.19.0.0/16
DNS_IP=198.19.0.10
use_cluster "${INITWATCH_CLUSTER_ID:-0}"

# A folder for the kubeconfig of a cluster that is not ours (INITWATCH_CLUSTER=existing or =kind).
other_state() { local folder=${TMPDIR:-/tmp}; echo "${folder%/}/initwatch-cluster-${INITWATCH_CLUSTER:-own}"; }

# private_folder PATH: makes it for us alone; what another user has put there is not trusted.
private_folder() {
  [[ -d $1 ]] || mkdir -m 0700 "$1"
  [[ -O $1 && ! -L $1 ]] || fail "$1 belongs to somebody else" "remove it, or set TMPDIR"
}

# lock_cluster: one `up` or `down` of a cluster at a time, until the script ends. The lock is not in the
# cluster's folder, since `down` removes that.
lock_cluster() {
  mkdir -p "$CACHE"
  exec 8>"$CACHE/cluster-$CLUSTER_ID.lock"
  flock -n 8 && return
  say "another up or down of cluster $CLUSTER_ID is under way: waiting for it"
  flock -w 300 8 || fail "another up or down of cluster $CLUSTER_ID did not end within 5 minutes"
}

kubectl() { "$KUBERNETES_BIN/kubectl" --kubeconfig "$ADMIN" --request-timeout=10s "$@"; }
containers() { ctr -a "$CONTAINERD" -n k8s.io "$@"; }

# wait_for WHAT SECONDS PART COMMAND...: polls a condition that a part of the cluster brings about.
# A part that ended, or a condition that does not come, is an error that shows the end of the part's log.
wait_for() {
  local what=$1 end=$((SECONDS + $2)) part=$3 problem=
  shift 3
  until "$@" >/dev/null 2>&1; do
    if ! is_running "$part"; then problem="$part ended before $what came"; fi
    if ((SECONDS >= end)); then problem="$what did not come in time"; fi
    if [[ -n $problem ]]; then
      tail -n 5 "$STATE/log/$part.log" >&2 || true
      fail "$problem" "the logs are in $STATE/log, $part.log first" \
        "to try again: the same command; from the beginning: tests/cluster/down first"
    fi
    sleep 0.2
  done
}

# --- processes: only those are ended that `run` started ----------------------------------------------------

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
  local name=$1
  shift
  is_running "$name" && return
  rm -f "$STATE/$name.pid"
  # The process writes its own number down before it becomes the program: there is no moment at which it runs
  # and is not known, whenever this script is interrupted.
  # `ip netns exec` would mount another /sys and hide the cgroups, hence nsenter.
  # The lock's descriptor is closed, or each part would hold the lock as long as it runs.
  # shellcheck disable=SC2016  # expanded by the inner shell
  setsid bash -c 'pid=$1; shift; read -ra stat <"/proc/$$/stat"
    echo "$$ ${stat[21]}" >"$pid.partial"; mv "$pid.partial" "$pid"; exec "$@"' run "$STATE/$name.pid" \
    nsenter --net="/run/netns/$NAMESPACE" "$@" >"$STATE/log/$name.log" 2>&1 </dev/null 8>&- 9>&- &
  for _ in $(seq 100); do
    [[ ! -s $STATE/$name.pid ]] || return 0
    sleep 0.05
  done
  fail "could not start $name" "look at $STATE/log/$name.log"
}

# stop NAME: ends a part that `run` started, at once: no state of the cluster is worth a flush.
stop() {
  local pid
  if is_running "$1"; then
    read -r pid _ <"$STATE/$1.pid"
    kill -s KILL "$pid" 2>/dev/null || true
    for _ in $(seq 50); do is_running "$1" || break; sleep 0.1; done
  fi
  rm -f "$STATE/$1.pid"
}

# replace FILE: writes standard input to a file, whole or not at all; 0 if that changed it.
replace() {
  cat >"$1.partial"
  if cmp -s "$1.partial" "$1"; then
    rm "$1.partial"
    return 1
  fi
  mv "$1.partial" "$1"
}
