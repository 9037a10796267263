package experiment

import (
	"time"

	"github.com/crdcache/crdcache/internal/testkit/cputime"
)

// ProcessCPU returns the processor time, user and system, that this process has used so far.
func ProcessCPU() (time.Duration, error) { return cputime.Used() }

// Stopwatch measures processor and elapsed time from its start on.
type Stopwatch struct {
	cpu  time.Duration
	wall time.Time
}

// StartStopwatch starts a stopwatch.
func StartStopwatch() (Stopwatch, error) {
	cpu, err := ProcessCPU()
	return Stopwatch{cpu: cpu, wall: time.Now()}, err
}

// Elapsed returns what has passed since start.
func (s Stopwatch) Elapsed() (cpu, wall time.Duration, err error) {
	wall = time.Since(s.wall)
	cpu, err = ProcessCPU()
	return cpu - s.cpu, wall, err
}
