#!/usr/bin/env bash
# kustomize/api v0.21.2: the namespace of a kustomization is also written into cluster-scoped custom resources, even if the definition
# that says "scope: Cluster" is in the same build. Built-in cluster-scoped types are left alone. An API server drops the field, but
# tools that read the manifests, and policies and lists by namespace, see the object in a namespace that it does not have.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const objects = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: gizmos, singular: gizmo, kind: Gizmo}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: example.com/v1
kind: Gizmo
metadata: {name: a}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: a}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
`

func main() {
	files := filesys.MakeFsInMemory()
	for name, text := range map[string]string{"kustomization.yaml": "namespace: team\nresources: [objects.yaml]\n", "objects.yaml": objects} {
		if err := files.WriteFile(name, []byte(text)); err != nil {
			panic(err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, ".")
	if err != nil {
		panic(err)
	}
	for _, object := range built.Resources() {
		fmt.Printf("%s: %q\n", object.GetKind(), object.GetNamespace())
	}
}
END
go get sigs.k8s.io/kustomize/api@v0.21.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
CustomResourceDefinition: ""
Gizmo: "team"
ClusterRole: ""
ConfigMap: "team"
END
