package experiment

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseStatus(t *testing.T) {
	const status = "Name:\tbench\nVmPeak:\t 9 kB\nVmHWM:\t  2048 kB\nVmRSS:\t 1024 kB\n"
	if got, err := parseStatus([]byte(status), "VmHWM:"); err != nil || got != 2<<20 {
		t.Errorf("parseStatus(VmHWM) = %d, %v, want 2 MiB", got, err)
	}
	if got, err := parseStatus([]byte(status), "VmRSS:"); err != nil || got != 1<<20 {
		t.Errorf("parseStatus(VmRSS) = %d, %v, want 1 MiB", got, err)
	}
	if _, err := parseStatus([]byte("VmRSS:\t 1024 kB\n"), "VmHWM:"); err == nil {
		t.Error("parseStatus() of a status without VmHWM succeeded, want an error")
	}
}

// TestLiveHeap verifies that liveHeap grows by an allocation and shrinks after its release.
func TestLiveHeap(t *testing.T) {
	const size = 32 << 20
	before := liveHeap()
	held := make([]byte, size)
	grown := liveHeap() - before
	runtime.KeepAlive(held)
	if grown < size*9/10 {
		t.Errorf("liveHeap() grew by %d bytes, want the allocated %d", grown, size)
	}
	if remaining := liveHeap() - before; remaining > size/2 {
		t.Errorf("liveHeap() is %d bytes larger after the release, want at most half of the allocation",
			remaining)
	}
}

var resultSink []byte

func TestAverageCost(t *testing.T) {
	calls := 0
	cost, err := averageCost(2*time.Millisecond, func(int) error {
		calls++
		resultSink = make([]byte, 1000)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if cost <= 0 || calls < 4 {
		t.Errorf("got %d calls of %v ns each, want at least 4 calls above 0 ns", calls, cost)
	}
}

func TestAverageColdCost(t *testing.T) {
	var numbers []int
	_, err := averageColdCost(3, func(n int) error {
		numbers = append(numbers, n)
		return nil
	})
	if err != nil || len(numbers) != 3 || numbers[2] != 2 {
		t.Errorf("called with %v, %v, want 0, 1 and 2", numbers, err)
	}
}

var errBroken = errors.New("broken")

func TestMeasurementsReturnErrors(t *testing.T) {
	fail := func(int) error { return errBroken }
	good := func(int) error { return nil }
	_, operation := averageCost(time.Millisecond, fail)
	_, calls := averageColdCost(1, fail)
	_, _, reader := longestCall(fail, func() error { return nil })
	_, _, work := longestCall(good, func() error { return errBroken })
	for name, err := range map[string]error{"averageCost": operation, "averageColdCost": calls,
		"longestCall, read": reader, "longestCall, f": work} {
		if !errors.Is(err, errBroken) {
			t.Errorf("%s: the error is %v, want the function's error", name, err)
		}
	}
}

// TestLongestCall verifies that longestCall measures a read that is blocked until the work ends.
func TestLongestCall(t *testing.T) {
	blocked := make(chan struct{})
	release := make(chan struct{})
	duration, longest, err := longestCall(
		func(n int) error {
			if n == 1 {
				close(blocked)
				<-release
			}
			return nil
		},
		func() error {
			<-blocked
			start := time.Now()
			for time.Since(start) < time.Millisecond { // so that the duration can be measured
			}
			close(release)
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if duration < time.Millisecond || longest < time.Millisecond {
		t.Errorf("the work took %v and the longest read %v, want at least 1ms both", duration, longest)
	}
}

func TestQueriesAreMeasured(t *testing.T) {
	for _, objects := range []int{1000, 3000} {
		outcome, err := measureQueries(t.Context(), Task{Objects: objects, Subject: Crdcache,
			Budget: time.Millisecond}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, metric := range []string{QueryFew, QuerySorted, QueryKeys, QuerySortedKeys, QueryDangling} {
			if outcome.Metrics[metric] <= 0 {
				t.Errorf("the outcome has no metric %s", metric)
			}
		}
	}
}

func TestSelectEvenly(t *testing.T) {
	all := []string{"a", "b", "c", "d", "e", "f"}
	if diff := cmp.Diff([]string{"a", "c", "e"}, selectEvenly(all, 3)); diff != "" {
		t.Errorf("three of six (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all, selectEvenly(all, 10)); diff != "" {
		t.Errorf("ten of six (-want +got):\n%s", diff)
	}
}
