#!/bin/sh
# What make demo shows: types, objects and queries by index. $1 is the crdcache binary; the other arguments say where
# to read from: --from and files, or nothing for the API server that KUBECONFIG names. What is printed behind a $ can be
# typed, in this directory, with the binary on the PATH.
set -eu
crdcache=$1
shift
cd "$(dirname "$0")"
config=indexes/platform.yaml
from=$*

# run prints a command and runs it.
run() {
  printf '\n$ crdcache %s%s\n' "$*" "${from:+ $from}"
  # shellcheck disable=SC2086 # from is several words
  "$crdcache" "$@" $from
}

printf '$ cd testdata; PATH=%s:$PATH\n' "$(dirname "$crdcache")"
run resources --custom --config $config
run dump workloads -n storefront
run query workloads -A --config $config --index environment=production-eu --index not-ready
run query workloads -A --config $config --group-by environment
run stats routes -A --config $config --top 3
printf '\nTo look at a cluster in the browser while it changes: make demo-web\n'
