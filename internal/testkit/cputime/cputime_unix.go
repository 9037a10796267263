//go:build unix

// Package cputime measures the processor time of this process, for benchmarks: unlike elapsed time it does
// not depend on what else runs.
package cputime

import (
	"syscall"
	"time"
)

// Used returns the processor time, user and system, that this process has used so far.
func Used() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
