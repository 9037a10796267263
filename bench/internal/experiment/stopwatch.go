package experiment

import (
	"time"

	"github.com/crdcache/crdcache/internal/testkit/cputime"
)

// cpuTime returns the processor time, user and system, that this process has used so far.
func cpuTime() (time.Duration, error) { return cputime.Used() }

// stopwatch measures processor and elapsed time from its start on.
type stopwatch struct {
	cpu  time.Duration
	wall time.Time
}

// startStopwatch starts a stopwatch.
func startStopwatch() (stopwatch, error) {
	cpu, err := cpuTime()
	return stopwatch{cpu: cpu, wall: time.Now()}, err
}

// Elapsed returns what has passed since start.
func (s stopwatch) Elapsed() (cpu, wall time.Duration, err error) {
	wall = time.Since(s.wall)
	cpu, err = cpuTime()
	return cpu - s.cpu, wall, err
}
