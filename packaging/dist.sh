#!/bin/sh
# Builds the files of a release from the checked-out commit: an archive of the command for each platform, its bill of
# materials, a krew manifest, and the checksums of all files. Builds are reproducible.
#
#   usage: dist.sh OUTDIR [VERSION]      VERSION: the tag of this commit, unless given
set -eu
out=${1:?usage: dist.sh OUTDIR [VERSION]}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/.."
version=${2:-$(git describe --tags --exact-match --match 'v*' 2>/dev/null || echo v0.0.0-"$(git rev-parse --short=12 HEAD)")}
export GOWORK=off CGO_ENABLED=0
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
(cd packaging/sbom && GOFLAGS=-buildvcs=false go build -o "$work/sbom" .)
GOFLAGS=-buildvcs=false go run ./cmd/crdcache/internal/reference -man "$work/man" -markdown "$work/reference" >/dev/null

rm -f "$out"/crdcache_* "$out/SHA256SUMS" "$out/crdcache.yaml"
for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64; do
  system=${platform%/*} architecture=${platform#*/} suffix=
  if [ "$system" = windows ]; then suffix=.exe; fi
  name=crdcache_${system}_$architecture
  folder=$work/$name
  mkdir -p "$folder"
  GOOS=$system GOARCH=$architecture go build -buildvcs=true -trimpath -ldflags '-s -w' -o "$folder/crdcache$suffix" ./cmd/crdcache
  "$work/sbom" "$folder/crdcache$suffix" >"$out/$name.cdx.json"
  cp LICENSE README.md CHANGELOG.md packaging/kubectl_complete-crdcache "$folder"
  cp -R "$work/man" "$work/reference" "$folder"
  # Omit the user, the time and the order of the files.
  tar -C "$folder" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --mode=u+rwX,go+rX,go-w \
    -cf - . | gzip -n9 >"$out/$name.tar.gz"
  echo "$out/$name.tar.gz"
done

cd "$out"
set --
for archive in crdcache_*.tar.gz; do
  platform=$(basename "$archive" .tar.gz)
  placeholder=SHA256_$(echo "${platform#crdcache_}" | tr '[:lower:]' '[:upper:]')
  set -- "$@" -e "s/$placeholder/$(sha256sum "$archive" | cut -d ' ' -f 1)/"
done
sed -e '1d' "$@" -e "s/VERSION/$version/" "$OLDPWD/packaging/krew.yaml" >crdcache.yaml
sha256sum crdcache_* crdcache.yaml >SHA256SUMS
