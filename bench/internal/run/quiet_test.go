package run

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestNoise(t *testing.T) {
	before := listen()
	if before.err != nil {
		t.Fatal(before.err)
	}
	n := before.noise(time.Hour)
	if n == nil || n.Load != before.load || n.OtherCPU < 0 || n.OtherCPU > 0.5 {
		t.Errorf("the noise is %+v, want next to nothing of an hour", n)
	}
	before.err = fmt.Errorf("not told")
	if n := before.noise(time.Hour); n != nil {
		t.Errorf("the noise is %+v without knowing", n)
	}
}

// TestNoiseOfOthers checks that the load of others is the machine's load minus the run's.
func TestNoiseOfOthers(t *testing.T) {
	before := listen()
	before.machine = machineTime{Busy: before.machine.Busy - time.Hour,
		Stolen: before.machine.Stolen - time.Hour}
	before.ownCPU -= 30 * time.Minute
	n := before.noise(time.Duration(float64(10*time.Hour) / float64(runtime.NumCPU())))
	if n == nil || n.OtherCPU < 0.049 || n.OtherCPU > 0.06 || n.StolenCPU < 0.099 || n.StolenCPU > 0.11 {
		t.Errorf("the noise is %+v, want 5 %% of others and 10 %% stolen", n)
	}
}

func TestWarn(t *testing.T) {
	for want, q := range map[string]otherLoad{
		"not quiet: the load average is 3.00": {load: 3},
		"is quiet: the load average is 0.10":  {load: 0.1},
		"not known: no":                       {err: fmt.Errorf("no")},
	} {
		var said string
		q.warn(func(format string, arguments ...any) { said = fmt.Sprintf(format, arguments...) })
		if !strings.Contains(said, want) {
			t.Errorf("printed %q, want %q", said, want)
		}
	}
}

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
