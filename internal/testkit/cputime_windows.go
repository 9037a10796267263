package testkit

import (
	"syscall"
	"time"
)

// CPUTime returns the CPU time, user and system, of this process.
func CPUTime() (time.Duration, error) {
	process, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0, err
	}
	var created, exited, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil {
		return 0, err
	}
	return ticks(kernel) + ticks(user), nil
}

// ticks converts a duration in units of 100 ns.
func ticks(t syscall.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}
