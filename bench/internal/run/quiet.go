package run

import (
	"runtime"
	"time"

	"github.com/crdcache/crdcache/bench/internal/report"
)

// busyLoad is the load average above which figures are unreliable.
const busyLoad = 0.5

// otherLoad measures the other load of the machine during a run.
type otherLoad struct {
	load    float64
	machine machineTime
	own     time.Duration
	err     error // the first error: some systems lack these figures
}

// listen starts the measurement.
func listen() otherLoad {
	var q otherLoad
	if q.load, q.err = loadAverage(); q.err != nil {
		return q
	}
	if q.machine, q.err = readMachineTime(); q.err != nil {
		return q
	}
	q.own, q.err = ownCPU()
	return q
}

// warn logs a high load before the run.
func (q otherLoad) warn(say func(string, ...any)) {
	switch {
	case q.err != nil:
		say("whether the machine is quiet is not known: %v", q.err)
	case q.load > busyLoad:
		say("the machine is not quiet: the load average is %.2f, and figures will be worse than they could be", q.load)
	default:
		say("the machine is quiet: the load average is %.2f", q.load)
	}
}

// noise returns the load of other processes. The run and its children must have ended.
func (q otherLoad) noise(took time.Duration) *report.Noise {
	after := listen()
	if q.err != nil || after.err != nil || took <= 0 {
		return nil
	}
	all := float64(took) * float64(runtime.NumCPU())
	others := (after.machine.Busy - q.machine.Busy) - (after.own - q.own)
	return &report.Noise{
		Load:   q.load,
		Others: max(float64(others), 0) / all,
		Stolen: float64(after.machine.Stolen-q.machine.Stolen) / all,
	}
}
