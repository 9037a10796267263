#!/bin/sh
# What make demo shows: types, objects and queries by index. $1 is the crdcache binary; the other arguments say where
# to read from: --from and files, or nothing for the API server that KUBECONFIG names.
set -eu
crdcache=$1
shift
cd "$(dirname "$0")"
config=indexes/platform.yaml

say() { printf '\n$ crdcache %s\n' "$*"; }

say resources --custom --config $config
"$crdcache" resources --custom --config $config "$@"
say dump workloads -n storefront
"$crdcache" dump workloads -n storefront "$@"
say query workloads -A --config $config --index environment=production-eu --index not-ready
"$crdcache" query workloads -A --config $config --index environment=production-eu --index not-ready "$@"
say query workloads -A --config $config --group-by environment
"$crdcache" query workloads -A --config $config --group-by environment "$@"
say stats routes -A --config $config --top 3
"$crdcache" stats routes -A --config $config --top 3 "$@"
