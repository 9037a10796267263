#!/bin/sh
# Builds etcd, kube-apiserver and kubectl of another Kubernetes version into OUTDIR, from Go modules, with the
# dependencies that the version was released with. Takes about 10 minutes of CPU; existing programs are not built again.
#
#   usage: build-version.sh VERSION OUTDIR      (build-version.sh 1.30.14 ~/.cache/crdcache/kubernetes/1.30.14)
set -eu

version=${1:?usage: build-version.sh VERSION OUTDIR}
out=${2:?usage: build-version.sh VERSION OUTDIR}
case $version in
1.[0-9]*.[0-9]*) ;;
*) echo "build-version.sh: '$version' is not a version like 1.30.14" >&2; exit 2 ;;
esac
mkdir -p "$out"
out=$(cd "$out" && pwd)
if [ -x "$out/kube-apiserver" ]; then exit 0; fi # the last of the three

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work"
export GOWORK=off GOFLAGS="-mod=mod -buildvcs=false -trimpath"

# Staging modules are published as v0.MINOR.PATCH; the released go.mod names folders of the repository instead.
gomod=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/^.*"GoMod": "\(.*\)".*$/\1/p')
sed -e 's|^module .*|module kubernetes|' -e "s|=> ./staging/src/\(.*\)|=> \1 v0.${version#1.}|" "$gomod" >go.mod
go mod edit -require="k8s.io/kubernetes@v$version"

package=k8s.io/component-base/version
minor=${version#1.}
ldflags="-s -w -X $package.gitVersion=v$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
ldflags="$ldflags -X $package.gitTreeState=clean -X $package.gitCommit=modules"
for program in go.etcd.io/etcd/server/v3 k8s.io/kubernetes/cmd/kubectl k8s.io/kubernetes/cmd/kube-apiserver; do
  name=$(basename "$program")
  if [ "$name" = v3 ]; then name=etcd; fi
  if [ -x "$out/$name" ]; then continue; fi
  echo "building $name of Kubernetes $version" >&2
  go build -ldflags "$ldflags" -o "$work/$name" "$program"
  mv "$work/$name" "$out/$name.new"
  mv "$out/$name.new" "$out/$name"
done
