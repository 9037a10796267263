#!/bin/sh
# Compares what the public packages of the published modules export with an earlier state of the repository, and fails
# where a program that compiled against that would not compile any more (exit code 3; any other says that it could not
# compare). A module that BASE does not have is new.
#
#   usage: apidiff.sh [BASE]      BASE: a tag or commit; the last tag v* unless given
set -eu
cd "$(dirname "$0")/.."
apidiff=golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e
export GOWORK=off GOFLAGS=-buildvcs=false

base=${1:-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)}
if [ -z "$base" ]; then
  echo "there is no release yet: nothing to compare with"
  exit 0
fi
git rev-parse --verify --quiet "$base^{commit}" >/dev/null || { echo "apidiff.sh: no tag or commit is called '$base'" >&2; exit 2; }

work=$(mktemp -d)
trap 'git worktree remove --force "$work/base" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
git worktree add --quiet --detach "$work/base" "$base"

broken=0
for folder in . controllerruntime metrics server storage/disk; do
  if [ ! -f "$work/base/$folder/go.mod" ]; then
    echo "$folder: new since $base"
    continue
  fi
  module=$(cd "$folder" && go list -m)
  (cd "$work/base/$folder" && go run $apidiff -m -w "$work/base.export" "$module")
  (cd "$folder" && go run $apidiff -m -w "$work/now.export" "$module")
  # apidiff tells of every internal package that it leaves out.
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
