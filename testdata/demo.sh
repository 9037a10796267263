#!/bin/sh
# What make demo shows: objects of custom types, dumped by name, by GVR and by short name.
# $1 is the crdcache binary; KUBECONFIG names the API server.
set -eu
show() {
  printf '\n$ crdcache %s\n' "$*"
  "$crdcache" "$@"
}
crdcache=$1
show dump workloads.demo.crdcache.dev -A
show dump routes.v1.demo.crdcache.dev -A -o wide
show dump Environment -o name
printf '\n$ crdcache dump workloads.v1.demo.crdcache.dev -n storefront -o json | head -n 20\n'
"$crdcache" dump workloads.v1.demo.crdcache.dev -n storefront -o json >"${TMPDIR:-/tmp}/crdcache-demo.$$"
head -n 20 "${TMPDIR:-/tmp}/crdcache-demo.$$"
rm -f "${TMPDIR:-/tmp}/crdcache-demo.$$"
