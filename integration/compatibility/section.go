package main

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"gotest.tools/gotestsum/testjson"
)

// section is what came of a run in which nothing failed: how much passed, and what was left out for which
// reason.
func section(results *testjson.Execution) string {
	var text strings.Builder
	text.WriteString("| package | tests passed | not run |\n|---|--:|--:|\n")
	reasons := map[string][]string{}
	for _, name := range results.Packages() {
		p := results.Package(name)
		if p.Total == 0 {
			continue
		}
		fmt.Fprintf(&text, "| `%s` | %d | %d |\n", path.Base(name), len(p.Passed), len(p.Skipped))
		for _, test := range p.Skipped {
			reason := skipReason(p.OutputLines(test))
			reasons[reason] = append(reasons[reason], fmt.Sprintf("`%s`: %s", path.Base(name),
				test.Test.Name()))
		}
	}
	for _, reason := range sortedByLength(reasons) {
		fmt.Fprintf(&text, "\nNot run, because it %s: %s.\n", reason, strings.Join(reasons[reason], ", "))
	}
	return text.String()
}

// skipReason finds what a test said when it was skipped, without the place in the source.
func skipReason(lines []string) string {
	for _, line := range lines {
		if _, reason, found := strings.Cut(line, ".go:"); found {
			_, reason, _ = strings.Cut(reason, ": ")
			return strings.TrimSpace(reason)
		}
	}
	return "gives no reason"
}

// sortedByLength puts the reasons with the most tests first.
func sortedByLength(reasons map[string][]string) []string {
	var names []string
	for name := range reasons {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(reasons[b]), len(reasons[a])), cmp.Compare(a, b))
	})
	return names
}
