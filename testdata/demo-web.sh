#!/usr/bin/env bash
# Shows the cluster of KUBECONFIG, which has crds and objects, on a page, and changes a workload every second.
# Usage: demo-web.sh CRDCACHE KUBECTL
set -eu
crdcache=$1 kubectl=$2
cd "$(dirname "$0")"

changes() {
  local n=0
  while sleep 1; do
    n=$((n + 1))
    "$kubectl" patch workload ledger -n payments --type merge --field-manager night-shift \
      -p "{\"spec\":{\"replicas\":$((n % 9 + 1))}}" >/dev/null || true
  done
}

changes &
trap 'kill $! 2>/dev/null || true' EXIT
"$crdcache" serve '*.demo.crdcache.dev' --web --config indexes/platform.yaml
