#!/usr/bin/env bash
# sigs.k8s.io/yaml v1.6.0 and apimachinery v0.37.2: one would expect that two readers of manifests fill a Go type alike. The one of
# API servers and kubectl compares field names exactly, as the API does. sigs.k8s.io/yaml reads with encoding/json, which ignores
# case. A tool or test that reads a Deployment with Replicas: 3 has three replicas, also in strict mode, and the cluster gets one. If both
# spellings occur, the one that sorts last by bytes wins, and strict mode takes them for two fields.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

func main() {
	for _, spec := range []string{"spec: {replicas: 3}", "spec: {Replicas: 3}", "Spec: {replicas: 3}", "spec: {replicas: 2, Replicas: 3}"} {
		text := []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n" + spec)
		var read appsv1.Deployment
		err := yaml.UnmarshalStrict(text, &read)
		decoded, _, decodeErr := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
		if decodeErr != nil {
			panic(decodeErr)
		}
		fmt.Printf("%s: yaml %d, %v; scheme %d\n", spec, ptr.Deref(read.Spec.Replicas, 1), err,
			ptr.Deref(decoded.(*appsv1.Deployment).Spec.Replicas, 1))
	}
}
END
go get k8s.io/client-go@v0.37.2 sigs.k8s.io/yaml@v1.6.0 2>/dev/null
go run . | tee seen
diff - seen <<'END'
spec: {replicas: 3}: yaml 3, <nil>; scheme 3
spec: {Replicas: 3}: yaml 3, <nil>; scheme 1
Spec: {replicas: 3}: yaml 3, <nil>; scheme 1
spec: {replicas: 2, Replicas: 3}: yaml 2, <nil>; scheme 2
END
