#!/bin/sh
# Compares the exported API of the published modules with an earlier commit. The exit code is 3 if a program that compiled
# against that commit might not compile any more; any other code above 0 is a failure of the comparison. Modules that BASE does
# not have are new.
#
#   usage: apidiff.sh [BASE]      BASE: a tag or commit; the last tag v* unless given
set -eu
cd "$(dirname "$0")/.."
apidiff=golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e
export GOWORK=off GOFLAGS=-buildvcs=false

base=${1:-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)}
if [ -z "$base" ]; then
  echo "no release yet: nothing to compare with"
  exit 0
fi
git rev-parse --verify --quiet "$base^{commit}" >/dev/null || { echo "apidiff.sh: no tag or commit named '$base'" >&2; exit 2; }

work=$(mktemp -d)
trap 'git worktree remove --force "$work/base" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
git worktree add --quiet --detach "$work/base" "$base"

broken=0
for folder in . cel controllerruntime metrics server storage/disk; do
  if [ ! -f "$work/base/$folder/go.mod" ]; then
    echo "$folder: new since $base"
    continue
  fi
  module=$(cd "$folder" && go list -m)
  (cd "$work/base/$folder" && go run $apidiff -m -w "$work/base.export" "$module")
  (cd "$folder" && go run $apidiff -m -w "$work/now.export" "$module")
  # apidiff reports every internal package that it skips.
  go run $apidiff -m -incompatible "$work/base.export" "$work/now.export" 2>"$work/stderr" >"$work/changes" ||
    { cat "$work/stderr" >&2; exit 1; }
  if [ -s "$work/changes" ]; then
    echo "$module: incompatible with $base:"
    cat "$work/changes"
    broken=3
  else
    echo "$module: compatible with $base"
  fi
done
exit $broken
