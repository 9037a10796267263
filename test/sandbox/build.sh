#!/bin/sh
# Builds the sandbox, etcd, kube-apiserver and kubectl into OUTDIR. Only this script
# sets the Kubernetes version that the binaries report.
#
#   usage: build.sh OUTDIR
set -eu

out=${1:?usage: build.sh OUTDIR}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")"

major=1
minor=37
patch=2
pkg=k8s.io/component-base/version
ldflags="-s -w -X $pkg.gitVersion=v$major.$minor.$patch"
ldflags="$ldflags -X $pkg.gitMajor=$major -X $pkg.gitMinor=$minor"
ldflags="$ldflags -X $pkg.gitTreeState=clean -X $pkg.gitCommit=sandbox"

# The workspace has the versions of the tests, which share the compiled packages.
GOWORK=$(cd ../integration && pwd)/go.work
export GOWORK
go build -ldflags "$ldflags" -o "$out/" . k8s.io/kubernetes/cmd/kubectl k8s.io/kubernetes/cmd/kube-apiserver
go build -ldflags "-s -w" -o "$out/etcd" go.etcd.io/etcd/server/v3
