//go:build unix

package testkit

import (
	"syscall"
	"time"
)

// CPUTime returns the CPU time, user and system, of this process.
func CPUTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
