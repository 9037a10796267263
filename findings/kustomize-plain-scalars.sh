#!/usr/bin/env bash
# kustomize/api v0.21.2 and sigs.k8s.io/yaml v1.6.0: one manifest has other values if kustomize builds it than if kubectl's parser reads
# it. A plain yes is the text "yes" for kustomize and true for kubectl. A plain date becomes a time of a day at midnight in kustomize
# and keeps its text in kubectl. Octal numbers are equal in both, so that kustomize follows neither YAML 1.1 nor 1.2 throughout.
# Neither reports the difference.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const object = `apiVersion: example.com/v1
kind: Gizmo
metadata: {name: a}
spec: {enabled: yes, expires: 2026-01-31, mode: 0644}
`

func main() {
	files := filesys.MakeFsInMemory()
	for name, text := range map[string]string{"kustomization.yaml": "resources: [object.yaml]\n", "object.yaml": object} {
		if err := files.WriteFile(name, []byte(text)); err != nil {
			panic(err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, ".")
	if err != nil {
		panic(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		panic(err)
	}
	show := func(reader string, manifest []byte) {
		var parsed map[string]any
		if err := yaml.Unmarshal(manifest, &parsed); err != nil {
			panic(err)
		}
		spec, _ := json.Marshal(parsed["spec"])
		fmt.Println(reader, string(spec))
	}
	show("the file:     ", []byte(object))
	show("kustomize's:  ", text)
}
END
go get sigs.k8s.io/kustomize/api@v0.21.2 sigs.k8s.io/yaml@v1.6.0 2>/dev/null
go run . | tee seen
diff - seen <<'END'
the file:      {"enabled":true,"expires":"2026-01-31","mode":420}
kustomize's:   {"enabled":"yes","expires":"2026-01-31T00:00:00Z","mode":420}
END
