#!/usr/bin/env bash
# apimachinery v0.37.2 and controller-runtime v0.25.2: one would expect that a computed patch leads to the given object, because the
# clients and the API server keep int64. Two of the three usual patches pass through float64. The three-way patch of kubectl apply for
# custom resources sends 1234567890123456800 for 1234567890123456789, and nothing at all when 9007199254740992 becomes
# 9007199254740993. The response of an admission webhook rounds likewise and loses its change in the second case. client.MergeFrom
# keeps the digits.
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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func job(seed int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Job", "seed": seed}}
}

func main() {
	for _, change := range [][2]int64{{1, 1234567890123456789}, {9007199254740992, 9007199254740993}} {
		before, after := job(change[0]), job(change[1])
		live, _ := before.MarshalJSON()
		manifest, _ := after.MarshalJSON()
		threeWay, err := jsonmergepatch.CreateThreeWayJSONMergePatch(live, manifest, live)
		fmt.Println("kubectl apply:", string(threeWay), err)
		merge, err := client.MergeFrom(before).Data(after)
		fmt.Println("MergeFrom:", string(merge), err)
		response, err := json.Marshal(admission.PatchResponseFromRaw(live, manifest).Patches)
		fmt.Println("webhook:", string(response), err)
	}
}
END
go get sigs.k8s.io/controller-runtime@v0.25.2 k8s.io/{api,apimachinery,client-go,apiextensions-apiserver}@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
kubectl apply: {"seed":1234567890123456800} <nil>
MergeFrom: {"seed":1234567890123456789} <nil>
webhook: [{"op":"replace","path":"/seed","value":1234567890123456800}] <nil>
kubectl apply: {} <nil>
MergeFrom: {"seed":9007199254740993} <nil>
webhook: [] <nil>
END
