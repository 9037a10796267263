package run

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/crdcache/crdcache/internal/testkit"
)

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
	own, err := testkit.CPUTime()
	return own + time.Duration(children.Utime.Nano()+children.Stime.Nano()), err
}
