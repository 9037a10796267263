package run

import (
	"testing"
	"time"
)

func TestParseMachine(t *testing.T) {
	const stat = "cpu  100 20 300 9000 800 1 2 50 7 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
	got, err := parseMachineTime([]byte(stat))
	if want := (machineTime{Busy: 4230 * time.Millisecond, Stolen: 500 * time.Millisecond}); err != nil ||
		got != want {
		t.Errorf("got %v, %v, want %v: neither idle nor waiting", got, err, want)
	}
	for _, bad := range []string{"", "cpu 1 2 3\n", "cpu a 2 3 4 5 6 7 8\n"} {
		if got, err := parseMachineTime([]byte(bad)); err == nil {
			t.Errorf("%q gives %v", bad, got)
		}
	}
}

// TestOwnTimeIsPartOfMachineTime checks that the process uses no more time than the machine, except for the
// resolution of its clock.
func TestOwnTimeIsPartOfMachineTime(t *testing.T) {
	if load, err := loadAverage(); err != nil || load < 0 {
		t.Errorf("the load is %v, %v", load, err)
	}
	own, err := ownCPU()
	if err != nil {
		t.Fatal(err)
	}
	all, err := readMachineTime()
	if err != nil || own > all.Busy+time.Second {
		t.Errorf("this process used %v, everything %v, %v", own, all.Busy, err)
	}
}
