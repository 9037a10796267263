//go:build unix

// Package cputime measures the CPU time of this process for benchmarks, which is independent of other
// processes.
package cputime

import (
	"syscall"
	"time"
)

// Used returns the CPU time, user and system, of this process.
func Used() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
