package soak_test

import (
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
)

// goroutineStacks counts the goroutines by their functions. It ignores the fault proxy, which leaks
// goroutines of broken connections.
func goroutineStacks(t testing.TB) map[string]int {
	t.Helper()
	var text strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		t.Fatal(err)
	}
	return countStacks(text.String())
}

var (
	stackPattern   = regexp.MustCompile(`(?ms)^(\d+) @[^\n]*\n(.*)`)
	addressPattern = regexp.MustCompile(`0x[0-9a-f]+\s*`)
)

// internedStacks interns the stacks of all measurements, which would otherwise count as growth of the heap.
var internedStacks = map[string]string{}

func intern(stack string) string {
	if interned, found := internedStacks[stack]; found {
		return interned
	}
	internedStacks[stack] = stack
	return stack
}

// countStacks parses a goroutine profile in text form.
func countStacks(profile string) map[string]int {
	counts := map[string]int{}
	for entry := range strings.SplitSeq(profile, "\n\n") {
		found := stackPattern.FindStringSubmatch(entry)
		if found == nil || strings.Contains(entry, "Shopify/toxiproxy") {
			continue
		}
		if n, err := strconv.Atoi(found[1]); err == nil { // the expression matches digits
			counts[intern(addressPattern.ReplaceAllString(found[2], ""))] += n
		}
	}
	return counts
}

// logMoreGoroutines logs the stacks of which there are more goroutines than before.
func logMoreGoroutines(t testing.TB, before, after map[string]int) {
	t.Helper()
	for stack, n := range after {
		if more := n - before[stack]; more > 1 {
			t.Logf("%d more goroutines in\n%s", more, stack)
		}
	}
}
