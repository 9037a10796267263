package testkit

import "testing"

func TestStacksWith(t *testing.T) {
	stacks := "goroutine 1:\ntestkit.leakedGoroutines ours.f\n\ngoroutine 2:\nours.g\n\ngoroutine 3:\ntheirs.h"
	if got, want := stacksWith(stacks, []string{"ours."}), "goroutine 2:\nours.g\n\n"; got != want {
		t.Errorf("stacksWith(ours.) = %q, want %q", got, want)
	}
	if got := stacksWith(stacks, []string{"nobody."}); got != "" {
		t.Errorf("stacksWith of an absent prefix = %q, want none", got)
	}
}
