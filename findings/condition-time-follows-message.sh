#!/usr/bin/env bash
# fluxcd/pkg/runtime v0.117.0: one would expect that lastTransitionTime of a condition is the time at which
# its status changed, as metav1.Condition and the API conventions define it. The package of Flux's
# controllers sets it anew with each new reason or message. A Ready condition whose message counts the tries
# never looks older than one try, so that an alert for "not ready for ten minutes" does not fire. With meta
# of apimachinery v0.37.2 the same calls keep the time.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

type object struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	conditions []metav1.Condition
}

func (o *object) DeepCopyObject() runtime.Object              { return o }
func (o *object) GetConditions() []metav1.Condition           { return o.conditions }
func (o *object) SetConditions(conditions []metav1.Condition) { o.conditions = conditions }

func main() {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first := metav1.Condition{Type: "Ready", Status: "False", Reason: "Failed", Message: "try 1",
		LastTransitionTime: metav1.NewTime(start)}
	for _, change := range [][3]string{{"False", "Failed", "try 1"}, {"False", "Failed", "try 2"},
		{"False", "Other", "try 1"}, {"True", "Failed", "try 1"}} {
		next := metav1.Condition{Type: "Ready", Status: metav1.ConditionStatus(change[0]), Reason: change[1],
			Message: change[2]}
		inFlux := &object{conditions: []metav1.Condition{first}}
		inMeta := []metav1.Condition{first}
		meta.SetStatusCondition(&inMeta, next)
		conditions.Set(inFlux, &next)
		fmt.Println(change, "time kept by meta:", inMeta[0].LastTransitionTime.Time.Equal(start),
			"by Flux:", inFlux.conditions[0].LastTransitionTime.Time.Equal(start))
	}
}
END
go get github.com/fluxcd/pkg/runtime@v0.117.0 k8s.io/apimachinery@v0.37.2 2>/dev/null
go mod tidy 2>/dev/null
go run . | tee seen
diff - seen <<'END'
[False Failed try 1] time kept by meta: true by Flux: true
[False Failed try 2] time kept by meta: true by Flux: false
[False Other try 1] time kept by meta: true by Flux: false
[True Failed try 1] time kept by meta: false by Flux: false
END
