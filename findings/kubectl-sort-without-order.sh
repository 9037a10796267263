#!/usr/bin/env bash
# kubectl v0.37.2: the order of --sort-by compares two texts as quantities if both parse, and by bytes
# otherwise. This is no order: 9 is before 10, 10 before 1x, and 1x before 9. The result for versions
# such as these depends on the order of the input, so that two lists of the same objects differ. A good
# guess is one rule for the whole column.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/cmd/get"
)

func main() {
	lists := [][]string{{"10", "9"}, {"10", "1x"}, {"1x", "9"},
		{"9", "10", "1x"}, {"10", "1x", "9"}, {"1x", "9", "10"}}
	for _, versions := range lists {
		var objects []runtime.Object
		for _, v := range versions {
			objects = append(objects, &unstructured.Unstructured{Object: map[string]any{"version": v}})
		}
		if _, err := get.SortObjects(nil, objects, ".version"); err != nil {
			panic(err)
		}
		fmt.Print(versions, " sorted:")
		for _, o := range objects {
			fmt.Print(" ", o.(*unstructured.Unstructured).Object["version"])
		}
		fmt.Println()
	}
}
END
go get k8s.io/kubectl@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
[10 9] sorted: 9 10
[10 1x] sorted: 10 1x
[1x 9] sorted: 1x 9
[9 10 1x] sorted: 9 10 1x
[10 1x 9] sorted: 10 1x 9
[1x 9 10] sorted: 1x 9 10
END
