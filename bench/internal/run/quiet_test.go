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
	if n == nil || n.Load != before.load || n.Others < 0 || n.Others > 0.5 {
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
	before.own -= 30 * time.Minute
	n := before.noise(time.Duration(float64(10*time.Hour) / float64(runtime.NumCPU())))
	if n == nil || n.Others < 0.049 || n.Others > 0.06 || n.Stolen < 0.099 || n.Stolen > 0.11 {
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
