#!/usr/bin/env bash
# Builds the image of the Containerfile without a registry, and checks it: check-image.sh [BINARY]
#
# It builds the program like the Containerfile, unless BINARY is given. buildah builds the last stage without a daemon and without
# network access. The user, entrypoint and port of the image must match the manifests, and the program must run as that user
# on a read-only file system.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
deployment=$root/packaging/crdcached/base/deployment.yaml
work=$(mktemp -d)
name=localhost/crdcached-check:$$
options=(--root "$work/storage" --runroot "$work/run" --storage-driver vfs)
container=
clean() {
  [ -z "$container" ] || buildah "${options[@]}" rm "$container" >/dev/null
  buildah "${options[@]}" rmi "$name" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean EXIT

build=$(sed -n 's/^RUN cd server && //p' "$root/packaging/crdcached/Containerfile")
if [ $# -gt 0 ]; then
  cp "$1" "$work/crdcached"
else
  (cd "$root/server" && eval "${build/-o \/crdcached/-o \"$work/crdcached\"}")
fi
sed -n '/^FROM scratch/,$ { s/^COPY --from=build \/crdcached /COPY crdcached /; p }' "$root/packaging/crdcached/Containerfile" >"$work/Containerfile"
buildah "${options[@]}" bud --isolation chroot -f "$work/Containerfile" -t "$name" "$work" >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }

is() { # WHAT GOT WANT
  [ "$2" = "$3" ] || { echo "$1 of the image is $2, the manifests have $3" >&2; exit 1; }
  echo "$1: $2"
}
of_image() { buildah "${options[@]}" inspect --type image --format "$1" "$name"; }
of_pod() { sed -n "s/^ *-\? *$1: //p" "$deployment" | head -1; }
is user "$(of_image '{{.OCIv1.Config.User}}')" "$(of_pod runAsUser):$(of_pod runAsGroup)"
is port "$(of_image '{{range $port, $_ := .OCIv1.Config.ExposedPorts}}{{$port}}{{end}}' | sed 's,/tcp,,')" "$(of_pod containerPort)"
is entrypoint "$(of_image '{{range .OCIv1.Config.Entrypoint}}{{.}}{{end}}')" /crdcached

# Run the program with only the files of the image, and with arguments after the entrypoint.
container=$(buildah "${options[@]}" from --pull-never "$name")
mounted=$(buildah "${options[@]}" mount "$container")
is files "$(cd "$mounted" && find . -type f | sort | tr '\n' ' ')" "./crdcached "
run() { # ARGUMENT…, as the user of the image on a read-only root, in namespaces of its own
  unshare --mount --pid --fork --kill-child sh -c 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && root=$1 && shift && exec chroot --userspec=65532:65532 "$root" /crdcached "$@"' sh "$mounted" "$@"
}
run --version
if run --config=/etc/crdcached/server.yaml 2>"$work/said"; then
  echo "crdcached starts without its config" >&2
  exit 1
fi
grep -q '/etc/crdcached/server.yaml: no such file' "$work/said" || { cat "$work/said" >&2; exit 1; }
echo "without its config: $(cat "$work/said")"
