# Shared by the scripts of this folder; sourced, not run.
# shellcheck shell=bash

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
