package run

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/crdcache/crdcache/bench/internal/report"
	"github.com/crdcache/crdcache/internal/testkit"
)

// busyLoad is the load average above which figures are unreliable.
const busyLoad = 0.5

// otherLoad measures the other load of the machine during a run.
type otherLoad struct {
	load    float64
	machine machineTime
	ownCPU  time.Duration
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
	q.ownCPU, q.err = ownCPU()
	return q
}

// warn logs a high load before the run.
func (q otherLoad) warn(printf func(string, ...any)) {
	switch {
	case q.err != nil:
		printf("whether the machine is quiet is not known: %v", q.err)
	case q.load > busyLoad:
		printf("the machine is not quiet: the load average is %.2f, and figures will be worse than they could be", q.load)
	default:
		printf("the machine is quiet: the load average is %.2f", q.load)
	}
}

// noise returns the load of other processes. The run and its children must have ended.
func (q otherLoad) noise(took time.Duration) *report.Noise {
	after := listen()
	if q.err != nil || after.err != nil || took <= 0 {
		return nil
	}
	available := float64(took) * float64(runtime.NumCPU())
	others := (after.machine.Busy - q.machine.Busy) - (after.ownCPU - q.ownCPU)
	return &report.Noise{
		Load:      q.load,
		OtherCPU:  max(float64(others), 0) / available,
		StolenCPU: float64(after.machine.Stolen-q.machine.Stolen) / available,
	}
}

// ticksPerSecond is the number of /proc/stat time units per second (USER_HZ), the same on every platform of
// Go.
const ticksPerSecond = 100

// loadAverage returns the average number of runnable processes in the last minute.
func loadAverage() (float64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	return strconv.ParseFloat(first, 64)
}

// machineTime is the CPU time of the machine since its start: Busy for its processes, Stolen for other
// machines on the host.
type machineTime struct{ Busy, Stolen time.Duration }

func readMachineTime() (machineTime, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return machineTime{}, err
	}
	return parseMachineTime(stat)
}

func parseMachineTime(stat []byte) (machineTime, error) {
	for line := range bytes.Lines(stat) {
		fields := strings.Fields(string(line))
		if len(fields) < 9 || fields[0] != "cpu" {
			continue
		}
		var m machineTime
		for i, field := range fields[1:9] {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return machineTime{}, err
			}
			used := time.Duration(n) * time.Second / ticksPerSecond
			switch i {
			case 3, 4: // idle, or waiting for a disk
			case 7:
				m.Stolen = used
			default:
				m.Busy += used
			}
		}
		return m, nil
	}
	return machineTime{}, fmt.Errorf("there is no line for all processors in /proc/stat")
}

// ownCPU returns the CPU time of this process and of its ended children.
func ownCPU() (time.Duration, error) {
	var children syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children); err != nil {
		return 0, err
	}
	used, err := testkit.CPUTime()
	return used + time.Duration(children.Utime.Nano()+children.Stime.Nano()), err
}
