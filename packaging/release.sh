#!/bin/sh
# Makes a release of the checked-out commit: sets the version in the changelog and in the modules that use the library, commits
# and tags all modules. It pushes nothing, but prints the command to push. All checks run before any change.
#
#   usage: release.sh VERSION      (release.sh v0.9.0)
set -eu
version=${1:?usage: release.sh VERSION}
cd "$(dirname "$0")/.."
fail() { echo "release.sh: $*" >&2; exit 1; }

echo "$version" | grep -Eq '^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$' ||
  fail "'$version' is not a version like v0.9.0"
[ -z "$(git status --porcelain)" ] || fail "there are uncommitted changes: commit them first"
git rev-parse --verify --quiet "refs/tags/$version" >/dev/null && fail "the tag $version already exists"
awk '/^## \[Unreleased\]/ {on = 1; next} /^## / {on = 0} on && /^- / {found = 1} END {exit !found}' CHANGELOG.md ||
  fail "CHANGELOG.md has no entries under [Unreleased]: add the changes that users notice"

# Semantic versioning: before 1.0.0 minor versions may break the API, later only major versions.
last=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)
changed=0
./packaging/apidiff.sh ${last:+"$last"} || changed=$?
case $changed in
0) ;;
3)
  part=1
  case $version in v0.*) part=1,2 ;; esac
  [ "$(echo "$version" | cut -d . -f $part)" != "$(echo "$last" | cut -d . -f $part)" ] ||
    fail "$version must not break the API of $last: see the changes above"
  ;;
*) fail "cannot compare the exported API with $last: see above" ;;
esac

date=$(date -u +%Y-%m-%d)
sed -e "s/^## \[Unreleased\]\$/## [Unreleased]\n\n## [${version#v}] - $date/" CHANGELOG.md >CHANGELOG.md.new
mv CHANGELOG.md.new CHANGELOG.md
modules="cel metrics controllerruntime storage/disk server"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd integration && GOWORK=off GOFLAGS=-buildvcs=false go build -o "$work/project" ./project)
# The tagged commit has no replace lines, which go install module/cmd@version refuses; the next commit has them again.
"$work/project" release -root . -version "$version"
git commit --quiet --all --message "release: $version"
git tag --annotate "$version" --message "crdcache $version"
for module in $modules; do git tag --annotate "$module/$version" --message "crdcache/$module $version"; done
"$work/project" release -root . -version "$version" -develop
git commit --quiet --all --message "all: replace modules by their folders again"
# GitHub starts no workflow for a push of more than three tags.
echo "Push it with: git push origin HEAD $(for module in $modules; do printf '%s ' "$module/$version"; done)&& git push origin $version"
echo "The release workflow then publishes the files. To undo instead: delete the tags with git tag -d, then git reset --hard HEAD~2"
