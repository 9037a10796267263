package testkit

import "testing"

func TestCPUTime(t *testing.T) {
	before, err := CPUTime()
	if err != nil {
		t.Fatal(err)
	}
	for after := before; after <= before; { // this loop uses CPU time
		if after, err = CPUTime(); err != nil {
			t.Fatal(err)
		}
	}
}
