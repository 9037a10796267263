package dynamicinformer

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails the run when it leaves goroutines of a factory, an informer or a reflector behind.
func TestMain(m *testing.M) {
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
		for stack := range strings.SplitSeq(string(buffer), "\n\n") {
			ours := strings.Contains(stack, "crdcache/") || strings.Contains(stack, "tools/cache.")
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
