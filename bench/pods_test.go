package main

import (
	"bytes"
	"testing"
)

// TestPods verifies that the Pods differ and can be copied.
func TestPods(t *testing.T) {
	lines := podLines()
	if i := bytes.Index(lines, []byte("%!")); i >= 0 {
		t.Fatalf("the format is wrong: %.100q", lines[i:])
	}
	r, err := parseRecording(lines)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for n := range podTemplates {
		names[r.template(n).name+r.template(n).uid] = true
	}
	if r.kind != "Pod" || len(names) != podTemplates {
		t.Errorf("%d objects of kind %s, want %d different Pods", len(names), r.kind, podTemplates)
	}
}
