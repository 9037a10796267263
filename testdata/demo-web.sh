#!/bin/sh
# make demo-web runs it: crdcache serve shows the page for the types of testdata. An object changes every second.
# $1 is the crdcache binary, $2 kubectl; KUBECONFIG names the API server. An interrupt ends it.
set -eu
crdcache=$1
kubectl=$2
cd "$(dirname "$0")"

# change changes objects as controllers and users do, until it is killed.
change() {
  n=0
  while sleep 1; do
    n=$((n + 1))
    case $((n % 3)) in
    0) workload=ledger namespace=payments ;;
    1) workload=search namespace=storefront ;;
    2) workload=transcoder namespace=media ;;
    esac
    if [ $((n % 2)) -eq 0 ]; then
      "$kubectl" patch workloads.demo.crdcache.dev $workload -n $namespace --type merge --field-manager demo-user \
        -p "{\"spec\":{\"replicas\":$((1 + n % 7))}}"
    else
      ready=False
      [ $((n % 4)) -eq 1 ] && ready=True
      "$kubectl" patch workloads.demo.crdcache.dev $workload -n $namespace --type merge --field-manager demo-controller --subresource status \
        -p "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"$ready\",\"reason\":\"Demo\",\"message\":\"change $n\",\"lastTransitionTime\":\"$(date -u +%Y-%m-%dT%H:%M:%SZ)\"}]}}"
    fi
  done
}
change >/dev/null &
changes=$!
trap 'kill "$changes" 2>/dev/null || true' EXIT # it may have had the signal, too
trap 'exit 0' INT TERM
"$crdcache" serve '*.demo.crdcache.dev' namespaces --config indexes/platform.yaml --web || [ $? -eq 130 ]
