package informer

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails the run when it leaves goroutines of an informer or a reflector behind.
func TestMain(m *testing.M) {
	flag.Parse()
	// The conformance suite spends its time waiting for client-go's backoff, not computing.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	code := m.Run()
	if left := leftGoroutines(); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leftGoroutines looks until nothing is left, for a few seconds, because what was told to end takes its time.
func leftGoroutines() string {
	var left string
	for range 100 {
		buffer := make([]byte, 1<<20)
		buffer = buffer[:runtime.Stack(buffer, true)]
		left = ""
		for _, stack := range strings.Split(string(buffer), "\n\n") {
			ours := strings.Contains(stack, "internal/informer.") || strings.Contains(stack, "tools/cache.")
			if ours && !strings.Contains(stack, "leftGoroutines") {
				left += stack + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
		time.Sleep(50 * time.Millisecond)
	}
	return left
}
