#!/usr/bin/env bash
# kustomize/api v0.21.2 and kubectl v0.37.2: one would expect that a literal of a configMapGenerator has the
# value that "kubectl create configmap --from-literal" stores for the same text. kustomize drops the first and
# the last character if both are the same quote. It does not ask whether the two belong together: the query
# "a" OR "b" becomes a" OR "b, and a JSON text loses its quotes. kubectl keeps them, and so does the generator
# for the same line in a file of envs. No error is reported.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"
	"strings"

	"k8s.io/kubectl/pkg/util"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

var lines = []string{`PLAIN=a b`, `JSON="a"`, `QUERY="a" OR "b"`, `FILTER='x' = y AND z = 'w'`,
	`ARGUMENTS="-v" -x`}

// generate returns the data of the config map that kustomize generates from the given field.
func generate(field string, entries []string) map[string]string {
	files := filesys.MakeFsInMemory()
	kustomization, err := yaml.Marshal(map[string]any{
		"configMapGenerator": []any{map[string]any{"name": "a", field: entries}}})
	if err != nil {
		panic(err)
	}
	for name, text := range map[string]string{"kustomization.yaml": string(kustomization),
		"env": strings.Join(lines, "\n")} {
		if err := files.WriteFile(name, []byte(text)); err != nil {
			panic(err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, ".")
	if err != nil {
		panic(err)
	}
	return built.Resources()[0].GetDataMap()
}

func main() {
	literals, env := generate("literals", lines), generate("envs", []string{"env"})
	for _, line := range lines {
		key, value, err := util.ParseLiteralSource(line)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: kubectl %s, kustomize literal %s, kustomize env %s\n", key, value, literals[key], env[key])
	}
}
END
go get sigs.k8s.io/kustomize/api@v0.21.2 k8s.io/kubectl@v0.37.2 sigs.k8s.io/yaml@v1.6.0 2>/dev/null
go mod tidy 2>/dev/null
go run . | tee seen
diff - seen <<'END'
PLAIN: kubectl a b, kustomize literal a b, kustomize env a b
JSON: kubectl "a", kustomize literal a, kustomize env "a"
QUERY: kubectl "a" OR "b", kustomize literal a" OR "b, kustomize env "a" OR "b"
FILTER: kubectl 'x' = y AND z = 'w', kustomize literal x' = y AND z = 'w, kustomize env 'x' = y AND z = 'w'
ARGUMENTS: kubectl "-v" -x, kustomize literal "-v" -x, kustomize env "-v" -x
END
