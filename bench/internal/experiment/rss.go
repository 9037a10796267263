package experiment

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ProcessPeakRSS returns the most memory in bytes that this process has had resident since it began to run its
// program. What getrusage gives is no replacement: there a process inherits the peak of the one that started
// it.
func ProcessPeakRSS() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("the peak of resident memory is only known on Linux: %w", err)
	}
	return parsePeakRSS(status)
}

func parsePeakRSS(status []byte) (int64, error) {
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) == 3 && string(fields[0]) == "VmHWM:" && string(fields[2]) == "kB" {
			kilobytes, err := strconv.ParseInt(string(fields[1]), 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("there is no VmHWM in the status of the process")
}
