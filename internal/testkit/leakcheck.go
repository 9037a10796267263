package testkit

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Main runs the tests and returns the exit code. It returns 1 if the tests pass but leak goroutines. A
// goroutine counts if its stack contains one of stackMarks.
func Main(m *testing.M, stackMarks ...string) int {
	code := m.Run()
	if leaked := leakedGoroutines(stackMarks); code == 0 && leaked != "" {
		fmt.Fprintf(os.Stderr, "goroutines leaked:\n%s\n", leaked)
		return 1
	}
	return code
}

// RunUntilEnd runs a function until the end of the test, which fails with its error. Later cleanups of the
// caller run before.
func RunUntilEnd(t testing.TB, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }() // ended by the cleanup
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// leakedGoroutines waits up to five seconds for goroutines to end, and returns the stacks of the remaining
// ones.
func leakedGoroutines(stackMarks []string) string {
	var leaked string
	for range 100 {
		buffer := make([]byte, 1<<20)
		buffer = buffer[:runtime.Stack(buffer, true)]
		if leaked = stacksWith(string(buffer), stackMarks); leaked == "" {
			return ""
		}
		time.Sleep(50 * time.Millisecond)
	}
	return leaked
}

// stacksWith returns the stacks that contain a mark, except the stack of the check itself.
func stacksWith(stacks string, stackMarks []string) string {
	var found strings.Builder
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		if strings.Contains(stack, "testkit.leakedGoroutines") {
			continue
		}
		for _, mark := range stackMarks {
			if strings.Contains(stack, mark) {
				found.WriteString(stack + "\n\n")
				break
			}
		}
	}
	return found.String()
}
