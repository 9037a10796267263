#!/usr/bin/env bash
# sigs.k8s.io/yaml v1.6.0 and go.yaml.in/yaml v3.0.4: the definition of the merge key says that keys of
# the map itself win over merged ones, wherever the merge key stands. v3 does so; sigs.k8s.io/yaml, the
# parser of Kubernetes, lets a merge key that comes last overwrite the own key. Its strict mode rejects
# both orders as a duplicate key. Two tools of one pipeline can thus deploy different values of one file.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	v3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

func main() {
	for _, web := range []string{"{<<: *base, replicas: 2}", "{replicas: 2, <<: *base}"} {
		text := []byte("base: &base {replicas: 1}\nweb: " + web)
		var lenient, strict, other struct {
			Web map[string]int `json:"web" yaml:"web"`
		}
		fmt.Println(web)
		err := yaml.Unmarshal(text, &lenient)
		fmt.Println("  sigs.k8s.io/yaml:", lenient.Web, err)
		fmt.Println("  strict: error", yaml.UnmarshalStrict(text, &strict) != nil)
		err = v3.Unmarshal(text, &other)
		fmt.Println("  v3:", other.Web, err)
	}
}
END
go get sigs.k8s.io/yaml@v1.6.0 go.yaml.in/yaml/v3@v3.0.4 2>/dev/null
go run . | tee seen
diff - seen <<'END'
{<<: *base, replicas: 2}
  sigs.k8s.io/yaml: map[replicas:2] <nil>
  strict: error true
  v3: map[replicas:2] <nil>
{replicas: 2, <<: *base}
  sigs.k8s.io/yaml: map[replicas:1] <nil>
  strict: error true
  v3: map[replicas:2] <nil>
END
