#!/usr/bin/env bash
# structured-merge-diff v6.4.2: one would expect that an apply of an element that the live list already holds with the same value
# passes without a conflict, as for every other field. A client that does not apply may have written the element twice, as a
# Deployment may name an environment variable twice. Then the live value is the list of both copies, and the apply conflicts although
# each copy is equal to the applied element. An apply of other elements of the list passes and keeps both copies. With force the
# copies become one.
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

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

const schema = `types:
- name: container
  map:
    fields:
    - name: env
      type:
        list:
          elementRelationship: associative
          keys: [name]
          elementType:
            map:
              fields:
              - {name: name, type: {scalar: string}}
              - {name: value, type: {scalar: string}}
`

type oneVersion struct{}

func (oneVersion) Convert(object *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return object, nil
}
func (oneVersion) IsMissingVersionError(error) bool { return false }

func main() {
	parser, err := typed.NewParser(schema)
	if err != nil {
		panic(err)
	}
	container := parser.Type("container")
	read := func(text typed.YAMLObject) *typed.TypedValue {
		object, err := container.FromYAML(text, typed.AllowDuplicates)
		if err != nil {
			panic(err)
		}
		return object
	}
	updater := (&merge.UpdaterBuilder{Converter: oneVersion{}}).BuildUpdater()
	for _, text := range []typed.YAMLObject{"env: [{name: A, value: x}]", "env: [{name: A, value: x}, {name: A, value: x}]"} {
		live, managers, err := updater.Update(read("{}"), read(text), "v1", fieldpath.ManagedFields{}, "kubectl-create")
		if err != nil {
			panic(err)
		}
		fmt.Println(text)
		for _, applied := range []typed.YAMLObject{"env: [{name: A, value: x}]", "env: [{name: B, value: x}]"} {
			for _, force := range []bool{false, true} {
				merged, _, err := updater.Apply(live, read(applied), "v1", managers.Copy(), "applier", force)
				fmt.Printf("  apply %s, force %t: ", applied, force)
				if err != nil {
					fmt.Println(err)
				} else if merged == nil {
					fmt.Println("unchanged")
				} else {
					encoded, _ := json.Marshal(merged.AsValue().Unstructured())
					fmt.Println(string(encoded))
				}
			}
		}
	}
}
END
go get sigs.k8s.io/structured-merge-diff/v6@v6.4.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
env: [{name: A, value: x}]
  apply env: [{name: A, value: x}], force false: unchanged
  apply env: [{name: A, value: x}], force true: unchanged
  apply env: [{name: B, value: x}], force false: {"env":[{"name":"A","value":"x"},{"name":"B","value":"x"}]}
  apply env: [{name: B, value: x}], force true: {"env":[{"name":"A","value":"x"},{"name":"B","value":"x"}]}
env: [{name: A, value: x}, {name: A, value: x}]
  apply env: [{name: A, value: x}], force false: conflict with "kubectl-create": .env[name="A"]
  apply env: [{name: A, value: x}], force true: {"env":[{"name":"A","value":"x"}]}
  apply env: [{name: B, value: x}], force false: {"env":[{"name":"A","value":"x"},{"name":"A","value":"x"},{"name":"B","value":"x"}]}
  apply env: [{name: B, value: x}], force true: {"env":[{"name":"A","value":"x"},{"name":"A","value":"x"},{"name":"B","value":"x"}]}
END
