#!/usr/bin/env bash
# apimachinery v0.37.2: the text selectors "in ()" and "in (b,,c)" are valid. An empty element is the empty value, so "tier in ()"
# selects the objects whose label has an empty value, neither nothing nor everything. The structured form of the same
# requirement, a LabelSelector with the operator In and no values, is an error.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func main() {
	for _, text := range []string{"tier in ()", "tier in (b,,c)", "tier notin ()"} {
		s, err := labels.Parse(text)
		if err != nil {
			fmt.Println(text, err)
			continue
		}
		fmt.Printf("%s: empty value %t, value x %t, no label %t\n", text, s.Matches(labels.Set{"tier": ""}),
			s.Matches(labels.Set{"tier": "x"}), s.Matches(labels.Set{}))
	}
	_, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "tier", Operator: metav1.LabelSelectorOpIn}}})
	fmt.Println("structured, without values: error", err != nil)
}
END
go get k8s.io/apimachinery@v0.37.2 2>/dev/null
go run . | tee seen
diff - seen <<'END'
tier in (): empty value true, value x false, no label false
tier in (b,,c): empty value true, value x false, no label false
tier notin (): empty value false, value x true, no label true
structured, without values: error true
END
