#!/usr/bin/env bash
# Builds the image of the Containerfile for all its platforms without a registry, and checks it: check-image.sh [FOLDER]
#
# It builds the programs like the release, unless FOLDER has linux/amd64/crdcached and linux/arm64/crdcached. buildah builds on an
# empty base without a daemon and without network access. The user, entrypoint and port of the images must match the manifests,
# and the program of this machine's platform must run as that user on a read-only file system.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
deployment=$root/serving/packaging/crdcached/base/deployment.yaml
work=$(mktemp -d)
name=localhost/crdcached-check:$$
options=(--root "$work/storage" --runroot "$work/run" --storage-driver vfs)
container=
clean() {
  [ -z "$container" ] || buildah "${options[@]}" rm "$container" >/dev/null
  buildah "${options[@]}" rmi --all --force >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean EXIT

context=${1:-$work/context}
if [ $# -eq 0 ]; then
  for architecture in amd64 arm64; do
    (cd "$root/serving/server" && GOWORK=off CGO_ENABLED=0 GOARCH=$architecture \
      go build -trimpath -ldflags='-s -w' -o "$context/linux/$architecture/crdcached" ./cmd/crdcached)
  done
fi
for architecture in amd64 arm64; do
  buildah "${options[@]}" bud --isolation chroot --from scratch --platform "linux/$architecture" \
    --manifest "$name" -t "$name-$architecture" -f "$root/serving/packaging/crdcached/Containerfile" "$context" >"$work/output" 2>&1 ||
    { cat "$work/output" >&2; exit 1; }
done

is() { # WHAT GOT WANT
  [ "$2" = "$3" ] || { echo "$1 of the image is $2, the manifests have $3" >&2; exit 1; }
  echo "$1: $2"
}
of_pod() { sed -n "s/^ *-\? *$1: //p" "$deployment" | head -1; }
is platforms "$(buildah "${options[@]}" manifest inspect "$name" | sed -n 's/^ *"architecture": "\(.*\)",\?$/\1/p' | sort | tr '\n' ' ')" "amd64 arm64 "
for architecture in amd64 arm64; do
  of_image() { buildah "${options[@]}" inspect --type image --format "$1" "$name-$architecture"; }
  is "platform" "$(of_image '{{.OCIv1.Architecture}}')" $architecture
  is user "$(of_image '{{.OCIv1.Config.User}}')" "$(of_pod runAsUser):$(of_pod runAsGroup)"
  is port "$(of_image '{{range $port, $_ := .OCIv1.Config.ExposedPorts}}{{$port}}{{end}}' | sed 's,/tcp,,')" "$(of_pod containerPort)"
  is entrypoint "$(of_image '{{range .OCIv1.Config.Entrypoint}}{{.}}{{end}}')" /crdcached
done

# Run the program with only the files of the image, and with arguments after the entrypoint.
container=$(buildah "${options[@]}" from --pull-never "$name-$(go env GOARCH)")
mounted=$(buildah "${options[@]}" mount "$container")
is files "$(cd "$mounted" && find . -type f | sort | tr '\n' ' ')" "./crdcached "
run() { # ARGUMENT…, as the user of the image on a read-only root, in namespaces of its own
  unshare --mount --pid --fork --kill-child sh -c 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && root=$1 && shift && exec chroot --userspec=65532:65532 "$root" /crdcached "$@"' sh "$mounted" "$@"
}
run --version
if run --config=/etc/crdcached/server.yaml 2>"$work/output"; then
  echo "crdcached starts without its config" >&2
  exit 1
fi
grep -q '/etc/crdcached/server.yaml: no such file' "$work/output" || { cat "$work/output" >&2; exit 1; }
echo "without its config: $(cat "$work/output")"
