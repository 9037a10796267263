package experiment

import (
	"time"

	"github.com/crdcache/crdcache/internal/testkit"
)

// cpuTime returns the user and system time of this process so far.
func cpuTime() (time.Duration, error) { return testkit.CPUTime() }

// stopwatch measures CPU time and elapsed time since its start.
type stopwatch struct {
	cpu  time.Duration
	wall time.Time
}

func startStopwatch() (stopwatch, error) {
	cpu, err := cpuTime()
	return stopwatch{cpu: cpu, wall: time.Now()}, err
}

// Elapsed returns the times since the start.
func (s stopwatch) Elapsed() (cpu, wall time.Duration, err error) {
	wall = time.Since(s.wall)
	cpu, err = cpuTime()
	return cpu - s.cpu, wall, err
}
