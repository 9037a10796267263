#!/usr/bin/env bash
# controller-runtime v0.25.2: one would expect that a defaulting webhook keeps the fields that its Go type lacks at their place, because
# keeping them is its default. It drops the removals from its patch that the Go type alone would cause. The patch addresses list elements
# by index, so that an unknown field stays at its index while the elements move. A newer CRD may give each rule a weight. A webhook that
# inserts a rule in front, removes one, or sorts them then gives the weight of one rule to another. No part reports it.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type Rule struct {
	Name string `json:"name"`
	Port int    `json:"port,omitempty"`
}

type Gate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Rules             []Rule `json:"rules"`
}

func (g *Gate) DeepCopyObject() runtime.Object {
	copied := *g
	copied.Rules = slices.Clone(g.Rules)
	return &copied
}

type defaulter func(*Gate)

func (d defaulter) Default(_ context.Context, gate *Gate) error {
	d(gate)
	return nil
}

const gate = `{"apiVersion":"example.com/v1","kind":"Gate","metadata":{"name":"web"},"rules":[{"name":"b","weight":7},{"name":"a"}]}`

func main() {
	for _, c := range []struct {
		name      string
		defaulter defaulter
	}{
		{"set a port", func(gate *Gate) { gate.Rules[0].Port = 80 }},
		{"append", func(gate *Gate) { gate.Rules = append(gate.Rules, Rule{Name: "default"}) }},
		{"insert in front", func(gate *Gate) { gate.Rules = slices.Insert(gate.Rules, 0, Rule{Name: "default"}) }},
		{"remove the first", func(gate *Gate) { gate.Rules = gate.Rules[1:] }},
		{"sort", func(gate *Gate) { slices.Reverse(gate.Rules) }},
	} {
		request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(gate)}}}
		response := admission.WithDefaulter(runtime.NewScheme(), c.defaulter).Handle(context.Background(), request)
		if err := response.Complete(request); err != nil {
			panic(err)
		}
		patch, err := jsonpatch.DecodePatch(response.Patch)
		if err != nil {
			panic(err)
		}
		patched, err := patch.Apply([]byte(gate))
		if err != nil {
			panic(err)
		}
		var object struct {
			Rules json.RawMessage `json:"rules"`
		}
		if err := json.Unmarshal(patched, &object); err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s\n", c.name, object.Rules)
	}
}
END
go get sigs.k8s.io/controller-runtime@v0.25.2 k8s.io/{api,apimachinery,client-go}@v0.37.2 gopkg.in/evanphx/json-patch.v4@v4.13.0 2>/dev/null
go run . | tee seen
diff - seen <<'END'
set a port: [{"name":"b","port":80,"weight":7},{"name":"a"}]
append: [{"name":"b","weight":7},{"name":"a"},{"name":"default"}]
insert in front: [{"name":"default","weight":7},{"name":"b"},{"name":"a"}]
remove the first: [{"name":"a","weight":7}]
sort: [{"name":"a","weight":7},{"name":"b"}]
END
