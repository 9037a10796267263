package guard

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rings are the folders of each ring of the project. All other folders belong to the mission.
var rings = map[string][]string{
	"adapters": {"adapters", "internal/block"}, // the format of adapters/storage/disk
	"serving":  {"serving"},
	"test":     {"test", "examples", "internal/testkit", "internal/guard", "internal/informer/conformance"},
}

// ringOf returns the ring of a Go file without tests.
func ringOf(file string) string {
	for ring, folders := range rings {
		if slices.ContainsFunc(folders, func(folder string) bool { return isWithin(file, folder) }) {
			return ring
		}
	}
	return "mission"
}

// measure returns the sizes that rings.txt limits. The values of files are numbers of lines.
func measure(files map[string]int) map[string]int {
	sizes := map[string]int{}
	folders, packages := map[string]bool{}, map[string]int{}
	for name, lines := range files {
		if first, _, nested := strings.Cut(name, "/"); !strings.HasPrefix(first, ".") {
			if !nested {
				sizes["root-files"]++
			} else {
				folders[first] = true
			}
		}
		switch {
		case path.Base(name) == "go.mod":
			sizes["modules"]++
		case !strings.HasSuffix(name, ".go") || strings.Contains(name, "testdata/"):
		case strings.HasSuffix(name, "_test.go"):
			sizes["tests"] += lines
		default:
			sizes[ringOf(name)] += lines
			packages[path.Dir(name)]++
		}
	}
	sizes["root-folders"] = len(folders)
	for _, count := range packages {
		sizes["files-per-package"] = max(sizes["files-per-package"], count)
	}
	return sizes
}

// readLimits reads the limits of a file with a name and a number in each line.
func readLimits(t *testing.T, text string) map[string]int {
	t.Helper()
	limits := map[string]int{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		limit, err := strconv.Atoi(fields[len(fields)-1])
		if err != nil || len(fields) != 2 {
			t.Fatalf("rings.txt: want a name and a number, got %q", line)
		}
		limits[fields[0]] = limit
	}
	return limits
}

// aboveLimits lists the sizes above their limits, and the sizes and limits without a counterpart.
func aboveLimits(sizes, limits map[string]int) []string {
	var violations []string
	for name, size := range sizes {
		if limit, ok := limits[name]; !ok || size > limit {
			violations = append(violations, fmt.Sprintf("%s: %d, at most %d: delete as much as you add", name, size, limit))
		}
	}
	for name := range limits {
		if _, ok := sizes[name]; !ok {
			violations = append(violations, fmt.Sprintf("rings.txt limits %s, which is not measured", name))
		}
	}
	return violations
}

// TestRings holds the project to rings.txt; make size shows the sizes.
func TestRings(t *testing.T) {
	lines := map[string]int{}
	for _, name := range files(t) {
		lines[name] = 0
		if strings.HasSuffix(name, ".go") {
			lines[name] = bytes.Count(readFile(t, name), []byte("\n"))
		}
	}
	text, err := os.ReadFile("testdata/rings.txt")
	if err != nil {
		t.Fatal(err)
	}
	sizes, limits := measure(lines), readLimits(t, string(text))
	for name, limit := range limits {
		t.Logf("%-18s %7d of %7d", name, sizes[name], limit)
	}
	reportViolations(t, aboveLimits(sizes, limits))
}

func TestAboveLimits(t *testing.T) {
	sizes := measure(map[string]int{
		"go.mod": 0, ".ci/run": 0, "serving/web.go": 10, "serving/web_test.go": 30, "discovery/a.go": 5, "discovery/b.go": 6,
		"adapters/go.mod": 0, "adapters/cel.go": 1, "test/main.go": 2, "serving/testdata/x.go": 99,
	})
	limits := map[string]int{"mission": 11, "adapters": 1, "serving": 10, "test": 2, "tests": 30, "modules": 2,
		"root-files": 1, "root-folders": 4, "files-per-package": 2}
	expectViolations(t, aboveLimits(sizes, limits))
	for name := range limits {
		limits[name]--
		expectViolations(t, aboveLimits(sizes, limits), fmt.Sprintf("%s: %d, at most %d", name, sizes[name], limits[name]))
		limits[name]++
	}
	limits["other"] = 1
	expectViolations(t, aboveLimits(sizes, limits), "other, which is not measured")
}
