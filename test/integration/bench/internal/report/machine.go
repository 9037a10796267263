package report

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Machine describes the machine and the software of a run. Unknown values are empty or zero.
type Machine struct {
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memoryBytes"`
	Kernel      string `json:"kernel"`
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	Go          string `json:"go"`
	// Kubernetes is the version of the API server; ClientGo and ControllerRuntime are the peers' versions.
	Kubernetes        string `json:"kubernetes"`
	ClientGo          string `json:"clientGo"`
	ControllerRuntime string `json:"controllerRuntime"`
	// Commit is the revision of crdcache, followed by "+" if files were changed.
	Commit string `json:"commit"`
	// LoadAverage is the average number of runnable processes in the minute before the run.
	LoadAverage string `json:"loadAverage"`
}

// ThisMachine describes the machine without the versions that only a server knows.
func ThisMachine() Machine {
	// Unreadable values stay empty, as on other systems.
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	meminfo, _ := os.ReadFile("/proc/meminfo")
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	load, _ := os.ReadFile("/proc/loadavg")
	loadAverage, _, _ := strings.Cut(string(load), " ")
	memory, _ := strconv.ParseInt(strings.TrimSuffix(procField(meminfo, "MemTotal"), " kB"), 10, 64)
	return Machine{
		CPU:         procField(cpuinfo, "model name"),
		Cores:       runtime.NumCPU(),
		MemoryBytes: memory << 10,
		Kernel:      strings.TrimSpace(string(kernel)),
		OS:          runtime.GOOS,
		Arch:        runtime.GOARCH,
		Go:          runtime.Version(),
		LoadAverage: loadAverage,
	}
}

// procField returns the first value of a field in a file of the form "name : value".
func procField(file []byte, name string) string {
	for line := range bytes.Lines(file) {
		field, value, found := strings.Cut(string(line), ":")
		if found && strings.TrimSpace(field) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
