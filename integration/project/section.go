package main

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"gotest.tools/gotestsum/testjson"
)

// section returns the numbers of tests that passed and that were skipped in a run without failures, and the
// skipped tests of each package by their reason.
func section(results *testjson.Execution) string {
	reasons := map[string][]string{}
	packages, passed, skipped := 0, 0, 0
	for _, name := range results.Packages() {
		p := results.Package(name)
		if p.Total == 0 {
			continue
		}
		packages, passed, skipped = packages+1, passed+len(p.Passed), skipped+len(p.Skipped)
		for _, test := range p.Skipped {
			reason := skipReason(p.OutputLines(test))
			reasons[reason] = append(reasons[reason], path.Base(name))
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Tests: %d passed, %d skipped, in %d packages.\n", passed, skipped, packages)
	for _, reason := range sortedByLength(reasons) {
		of := reasons[reason]
		noun := "tests"
		if len(of) == 1 {
			noun = "test"
		}
		fmt.Fprintf(&text, "\nSkipped %d %s of `%s`: %s.\n", len(of), noun,
			strings.Join(slices.Compact(slices.Sorted(slices.Values(of))), "`, `"), reason)
	}
	return text.String()
}

// skipReason returns the message of a skipped test, without its file and line.
func skipReason(lines []string) string {
	for _, line := range lines {
		if _, reason, found := strings.Cut(line, ".go:"); found {
			_, reason, _ = strings.Cut(reason, ": ")
			return strings.TrimSuffix(strings.TrimSpace(reason), ", which this server lacks")
		}
	}
	return "no reason given"
}

// sortedByLength puts the reasons with the most tests first.
func sortedByLength(reasons map[string][]string) []string {
	return slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(reasons[b]), len(reasons[a])), cmp.Compare(a, b))
	})
}
