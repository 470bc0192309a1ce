# Shared by the demo's scripts; sourced, not run.
# shellcheck shell=bash
# shellcheck disable=SC2034  # the scripts that source this use what they need

demo=initwatch-demo
log=${TMPDIR:-/tmp}/initwatch-demo${INITWATCH_CLUSTER_ID:+-$INITWATCH_CLUSTER_ID}.log
work=$(mktemp -d)

# connect up|known: finds the cluster; afterwards `kubectl` and $KUBECONFIG are of it.
connect() {
  case ${INITWATCH_CLUSTER:-own} in
  own)
    # The names of deploy/base: the cluster is ours.
    system=initwatch-system
    ADMIN=$STATE/admin.kubeconfig
    [[ $1 = known ]] || tests/cluster/up --node >/dev/null
    DEMO_IMAGE=${DEMO_IMAGE:-localhost/busybox:1}
    KUBECTL=$KUBERNETES_BIN/kubectl
    ;;
  existing | kind)
    # Somebody's cluster: all in one namespace, which is easily removed.
    system=$demo
    local line
    line=$(tests/cluster/up)
    eval "$line"
    ADMIN=$KUBECONFIG
    DEMO_IMAGE=${DEMO_IMAGE:-busybox:1.36}
    # The program: lib.sh has a function of the same name.
    KUBECTL=$(type -P kubectl) || fail "kubectl is missing" "https://kubernetes.io/docs/tasks/tools/"
    ;;
  *) tests/cluster/up ;;
  esac
  export KUBECONFIG=$ADMIN
  # The one of lib.sh knows only our own cluster.
  # shellcheck disable=SC2317  # called by the scripts that source this
  kubectl() { "$KUBECTL" "$@"; }
}

# The namespace, ServiceAccount and RBAC of deploy/base: all but its Deployment, since the demo runs the
# controller on this machine.
permissions() {
  local folder=$work/permissions resources="namespace.yaml, serviceaccount.yaml, rbac.yaml"
  mkdir -p "$folder"
  cp deploy/base/{namespace,serviceaccount,rbac,rbac-readers}.yaml "$folder"
  if [[ $system = initwatch-system ]]; then
    resources+=", rbac-readers.yaml"
  else
    # Somebody's cluster, where initwatch may be installed: the cluster-wide names are the demo's own.
    sed -i 's/^  name: initwatch$/  name: initwatch-demo/; /^- kind: ServiceAccount/,$ s/^  name: .*/  name: initwatch/' "$folder/rbac.yaml"
    sed -i "s/initwatch-system/$system/" "$folder"/*.yaml
    # The examples are not made for the restricted level.
    sed -i '/pod-security/d' "$folder/namespace.yaml"
  fi
  cat >"$folder/kustomization.yaml" <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: $system
resources: [$resources]
YAML
  kubectl kustomize "$folder"
}

# The examples with the image of this cluster.
examples() {
  local folder=$work/examples
  mkdir -p "$folder"
  cp deploy/examples/*.yaml "$folder"
  sed -i "s|newName: .*|newName: ${DEMO_IMAGE%:*}|; s|newTag: .*|newTag: \"${DEMO_IMAGE##*:}\"|" "$folder/kustomization.yaml"
  kubectl kustomize "$folder"
}

# A kubeconfig with a token of the controller's ServiceAccount.
service_account_kubeconfig() {
  local token view
  token=$(kubectl -n "$system" create token initwatch --duration=24h)
  view=$(kubectl config view --minify --raw -o 'jsonpath={.clusters[0].cluster}')
  cat <<YAML
apiVersion: v1
kind: Config
current-context: initwatch
clusters: [{name: initwatch, cluster: $view}]
users: [{name: initwatch, user: {token: $token}}]
contexts: [{name: initwatch, context: {cluster: initwatch, user: initwatch}}]
YAML
}
