#!/usr/bin/env bash
# controller-tools v0.23.0: one would expect that controller-gen reads a json tag without a name, such as
# `json:",omitempty"` or `json:",inline"`, as Go does: a field that has a name in Go keeps it, and only an
# embedded one is inlined. It inlines both. The typed client writes spec.Limits.cpu, the generated CRD has
# spec.cpu. A server prunes the first or, as here, rejects the object because the second is required. The
# converter of apimachinery v0.37.2, which makes unstructured objects, follows Go. No warning is printed.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
mkdir v1
cat >v1/types.go <<'END'
// +groupName=example.com
// +versionName=v1
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

type Limits struct {
	CPU string `json:"cpu"`
}

type Owner struct {
	Team string `json:"team"`
}

type ThingSpec struct {
	Limits Limits `json:",omitempty"`
	Owner  Owner  `json:",inline"`
}

// +kubebuilder:object:root=true
type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ThingSpec `json:"spec"`
}
END
cat >main.go <<'END'
package main

import (
	"encoding/json"
	"fmt"

	v1 "finding/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func main() {
	spec := v1.ThingSpec{Limits: v1.Limits{CPU: "2"}, Owner: v1.Owner{Team: "web"}}
	inJSON, _ := json.Marshal(spec)
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	fmt.Println("typed client:", string(inJSON))
	fmt.Println("converter:", converted, err)
}
END
go get sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 k8s.io/apimachinery@v0.37.2 2>/dev/null
go run . | tee seen
echo 'generated schema of the spec:' | tee -a seen
go run sigs.k8s.io/controller-tools/cmd/controller-gen crd paths=./v1 output:stdout |
	sed -n '/^          spec:/,/^        required/p' | sed '1d;$d' | tee -a seen
diff - seen <<'END'
typed client: {"Limits":{"cpu":"2"},"Owner":{"team":"web"}}
converter: map[Limits:map[cpu:2] Owner:map[team:web]] <nil>
generated schema of the spec:
            properties:
              cpu:
                type: string
              team:
                type: string
            required:
            - cpu
            - team
            type: object
END
