package cputime

import "testing"

func TestUsed(t *testing.T) {
	before, err := Used()
	if err != nil {
		t.Fatal(err)
	}
	for after := before; after <= before; { // this loop uses CPU time
		if after, err = Used(); err != nil {
			t.Fatal(err)
		}
	}
}
