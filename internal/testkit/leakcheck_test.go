package testkit

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestMarked(t *testing.T) {
	stacks := "goroutine 1:\ntestkit.leftGoroutines ours.f\n\ngoroutine 2:\nours.g\n\ngoroutine 3:\ntheirs.h"
	if got, want := stacksWith(stacks, []string{"ours."}), "goroutine 2:\nours.g\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := stacksWith(stacks, []string{"nobody."}); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}

func TestFamilies(t *testing.T) {
	for _, family := range LargeFamilies() {
		t.Run(family.Name, func(t *testing.T) {
			sum := 0
			const count = 200
			for n := range count {
				object := family.Make(n)
				sum += len(object)
				if !json.Valid(object) {
					t.Fatalf("object %d is not JSON:\n%s", n, object)
				}
				if !bytes.Equal(object, family.Make(n)) {
					t.Fatalf("object %d is another one each time", n)
				}
			}
			if average := sum / count; average < 7_000 || average > 14_000 {
				t.Errorf("objects have %d bytes on average", average)
			}
		})
	}
}
