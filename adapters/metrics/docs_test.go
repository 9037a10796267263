package metrics

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocsListAllMetrics compares the metrics in docs/operations.md with the collector.
func TestDocsListAllMetrics(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	must(t, err)
	sections := map[string]string{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		sections[title] = body
	}
	var names []string
	for _, m := range metricDefinitions {
		names = append(names, namespace+"_"+m.name)
	}
	for title, want := range map[string][]string{
		"States":     constants(t, "../../dynamicinformer/status/status.go", "State"),
		"Reasons":    constants(t, "../../dynamicinformer/status/reason.go", "Reason"),
		"Conditions": constants(t, "../../dynamicinformer/status/status.go", "ConditionType"),
		"Metrics":    names,
	} {
		got := firstCells(sections[title])
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
			t.Errorf("%s (-code +docs):\n%s", title, diff)
		}
	}
	// The second column lists each metric's labels.
	for _, m := range metricDefinitions {
		line := regexp.MustCompile("(?m)^\\| `" + namespace + "_" + m.name +
			"` \\|([^|]*)\\|").FindStringSubmatch(sections["Metrics"])
		if line == nil {
			continue // already reported
		}
		var labels []string
		for _, name := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(line[1], -1) {
			labels = append(labels, name[1])
		}
		if diff := cmp.Diff(m.labels, labels); diff != "" {
			t.Errorf("labels of %s (-code +docs):\n%s", m.name, diff)
		}
	}
}

// firstCells returns the words between backquotes in the first column of a table.
func firstCells(section string) []string {
	var cells []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(section, -1) {
		cells = append(cells, match[1])
	}
	return cells
}

// constants returns the values of the non-empty constants of a type.
func constants(t *testing.T, file, typ string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	must(t, err)
	var found []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == typ {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			must(t, err)
			if value != "" {
				found = append(found, value)
			}
		}
		return true
	})
	return found
}
