package soak_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

// minMeasurements is the number of measurements from which growth is checked. The first quarter is ignored,
// because it includes one-time costs.
const minMeasurements = 12

// measurement has the heap, the goroutines and the open files of the idle process. stacks counts the
// goroutines with each stack.
type measurement struct {
	At                time.Duration
	Heap              float64
	Goroutines, Files int
	stacks            map[string]int
}

// measure measures the process. It includes resources that are being closed, because they average out.
func measure(t testing.TB, at time.Duration) measurement {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	// The second collection frees memory that finalizers and pools retained during the first.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	m := measurement{At: at, Heap: float64(stats.HeapAlloc), Files: len(files), stacks: goroutineStacks(t)}
	for _, n := range m.stacks {
		m.Goroutines += n
	}
	if options.heaps != "" {
		writeHeap(t, filepath.Join(options.heaps, fmt.Sprintf("heap-%.0fs.pprof", at.Seconds())))
	}
	return m
}

// writeHeap writes a heap profile. go tool pprof -base compares it with an earlier one.
func writeHeap(t testing.TB, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(pprof.Lookup("heap").WriteTo(file, 0), file.Close()); err != nil {
		t.Error(err)
	}
}

// trend is a line through measurements.
type trend struct {
	// Mean is the middle of the line. Growth is its rise from the first to the last measurement, with the
	// standard error Deviation.
	Mean, Growth, Deviation float64
}

// fitTrend fits a line by least squares.
func fitTrend(at, values []float64) trend {
	n := float64(len(at))
	var meanAt, mean float64
	for i := range at {
		meanAt, mean = meanAt+at[i]/n, mean+values[i]/n
	}
	var square, product float64
	for i := range at {
		square, product = square+(at[i]-meanAt)*(at[i]-meanAt), product+(at[i]-meanAt)*(values[i]-mean)
	}
	slope := product / square
	var residual float64
	for i := range at {
		deviation := values[i] - mean - slope*(at[i]-meanAt)
		residual += deviation * deviation
	}
	span := at[len(at)-1] - at[0]
	return trend{Mean: mean, Growth: slope * span, Deviation: math.Sqrt(residual/(n-2)/square) * span}
}

// grows reports whether the growth exceeds both noise and a negligible amount.
func (t trend) grows(negligible float64) bool {
	return t.Growth > negligible && t.Growth > 3*t.Deviation
}

// growth has the trends of the checked resources.
type growth struct{ heap, goroutines, files trend }

// growthOf returns the trends of the measurements without their first quarter.
func growthOf(measurements []measurement) growth {
	measurements = measurements[len(measurements)/4:]
	of := func(value func(measurement) float64) trend {
		var at, values []float64
		for _, m := range measurements {
			at, values = append(at, m.At.Hours()), append(values, value(m))
		}
		return fitTrend(at, values)
	}
	return growth{
		heap:       of(func(m measurement) float64 { return m.Heap }),
		goroutines: of(func(m measurement) float64 { return float64(m.Goroutines) }),
		files:      of(func(m measurement) float64 { return float64(m.Files) }),
	}
}

// check fails the test if the heap grows by more than 5 % and 2 MiB, or another resource by more than 10.
func (g growth) check(t testing.TB) {
	t.Helper()
	if g.heap.grows(0.05*g.heap.Mean + 2<<20) {
		t.Errorf("the live heap grows: %+v", g.heap)
	}
	if g.goroutines.grows(10) {
		t.Errorf("the number of goroutines grows: %+v", g.goroutines)
	}
	if g.files.grows(10) {
		t.Errorf("the number of open files grows: %+v", g.files)
	}
}
