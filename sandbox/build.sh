#!/bin/sh
# Builds the sandbox and a matching kubectl into OUTDIR. This is the one place
# that knows which Kubernetes version the binaries report.
#
#   usage: build.sh OUTDIR
set -eu

out=${1:?usage: build.sh OUTDIR}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")"

major=1
minor=37
patch=0
pkg=k8s.io/component-base/version
ldflags="-s -w"
ldflags="$ldflags -X $pkg.gitVersion=v$major.$minor.$patch"
ldflags="$ldflags -X $pkg.gitMajor=$major -X $pkg.gitMinor=$minor"
ldflags="$ldflags -X $pkg.gitTreeState=clean -X $pkg.gitCommit=sandbox"

export GOWORK=off
go build -ldflags "$ldflags" -o "$out/sandbox" .
go build -ldflags "$ldflags" -o "$out/kubectl" k8s.io/kubernetes/cmd/kubectl
