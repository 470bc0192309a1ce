# Clusters that are not ours to make or to end: INITWATCH_CLUSTER=existing and =kind; sourced by `up`.
# shellcheck shell=bash

# The cluster of the current kubeconfig: named, asked about, and never touched without a yes.
use_existing() {
  command -v kubectl >/dev/null || fail "kubectl is missing; it names the current cluster"
  local context server answer
  context=$(command kubectl config current-context 2>/dev/null) || fail "there is no current context" "set one: kubectl config use-context ..."
  server=$(command kubectl config view --minify -o 'jsonpath={.clusters[0].cluster.server}')
  printf 'Context: %s\nServer:  %s\n' "$context" "$server" >&2
  if [[ ${YES:-} != 1 ]]; then
    [[ -t 0 ]] || fail "nobody can be asked whether to use this cluster" "say so: YES=1"
    read -r -p "Use this cluster? It gets two CustomResourceDefinitions, a ClusterRole and namespaces of its own. [y/N] " answer
    [[ $answer = [yY]* ]] || fail "not used"
  fi
  echo "export KUBECONFIG=${KUBECONFIG:-$HOME/.kube/config}"
}

use_kind() {
  command -v kind >/dev/null || fail "kind is not installed" "see https://kind.sigs.k8s.io, or leave INITWATCH_CLUSTER unset"
  mkdir -p "$STATE"
  kind get clusters 2>/dev/null | grep -qx initwatch || kind create cluster --name initwatch --wait 120s >&2
  kind get kubeconfig --name initwatch >"$ADMIN"
  echo "export KUBECONFIG=$ADMIN"
}
