package run

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/crdcache/crdcache/internal/testkit/cputime"
)

// ticks is how many units of /proc/stat are a second, on every platform that Go runs on.
const ticks = 100

// loadAverage returns how many processes wanted to run on average during the last minute.
func loadAverage() (float64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	return strconv.ParseFloat(first, 64)
}

// machineTime is the processor time that everything on this machine has used since it was started: Busy
// that of its processes, Stolen what a host gave to other machines when this one wanted it.
type machineTime struct{ Busy, Stolen time.Duration }

// readMachineTime reads it.
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
			used := time.Duration(n) * time.Second / ticks
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

// ownCPU returns the processor time that this process, and all that it started and that have ended, have
// used.
func ownCPU() (time.Duration, error) {
	var children syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children); err != nil {
		return 0, err
	}
	own, err := cputime.Used()
	return own + time.Duration(children.Utime.Nano()+children.Stime.Nano()), err
}
