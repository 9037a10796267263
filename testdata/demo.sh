#!/bin/sh
# make demo runs it: types, objects and queries by index. $1 is the crdcache binary. The other arguments are --from and
# files; without them, it reads from the API server of KUBECONFIG. Users can run the printed commands in this directory
# with the binary on the PATH.
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
run stats routes -A --config $config
printf '\nTo look at a cluster in the browser while it changes: make demo-web\n'
