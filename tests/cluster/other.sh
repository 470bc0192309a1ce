# Clusters that are not ours to make or to end: INITWATCH_CLUSTER=existing and =kind; sourced by `up`.
# shellcheck shell=bash

# The cluster of the current kubeconfig: named, asked about, and never touched without a yes.
use_existing() {
  type -P kubectl >/dev/null || fail "kubectl is missing; it names the current cluster"
  local context server answer
  context=$(command kubectl config current-context 2>/dev/null) || fail "there is no current context" "set one: kubectl config use-context ..."
  server=$(command kubectl config view --minify -o 'jsonpath={.clusters[0].cluster.server}')
  printf 'Context: %s\nServer:  %s\n' "$context" "$server" >&2
  if [[ ${YES:-} != 1 ]]; then
    [[ -t 0 ]] || fail "nobody can be asked whether to use this cluster" "say so: YES=1"
    read -r -p "Use this cluster? It gets two CustomResourceDefinitions, a ClusterRole and namespaces of its own. [y/N] " answer
    [[ $answer = [yY]* ]] || fail "not used"
  fi
  # A copy of this one context: whoever switches to another meanwhile does not take us along.
  keep "$(command kubectl config view --minify --raw --flatten)"
}

use_kind() {
  command -v kind >/dev/null || fail "kind is not installed" "install it: go install sigs.k8s.io/kind@latest (it needs Docker or Podman)" \
    "or leave INITWATCH_CLUSTER unset for a throwaway cluster of this machine's own"
  kind get clusters 2>/dev/null | grep -qx initwatch || kind create cluster --name initwatch --wait 120s >&2
  keep "$(kind get kubeconfig --name initwatch)"
}

keep() {
  local folder
  folder=$(other_state)
  private_folder "$folder"
  (umask 077 && printf '%s\n' "$1" >"$folder/admin.kubeconfig")
  echo "export KUBECONFIG=$folder/admin.kubeconfig"
}
