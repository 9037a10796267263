package measure

import (
	"time"

	"github.com/crdcache/crdcache/internal/testkit/cputime"
)

// CPU returns the processor time, user and system, that this process has used so far.
func CPU() (time.Duration, error) { return cputime.Used() }

// Stopwatch measures processor and elapsed time from its Start on.
type Stopwatch struct {
	cpu  time.Duration
	wall time.Time
}

// Start starts a stopwatch.
func Start() (Stopwatch, error) {
	cpu, err := CPU()
	return Stopwatch{cpu: cpu, wall: time.Now()}, err
}

// Elapsed returns what has passed since Start.
func (s Stopwatch) Elapsed() (cpu, wall time.Duration, err error) {
	wall = time.Since(s.wall)
	cpu, err = CPU()
	return cpu - s.cpu, wall, err
}
