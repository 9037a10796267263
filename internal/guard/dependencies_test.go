package guard

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDependencies compares docs/dependencies.md with the direct requirements of all modules.
func TestDependencies(t *testing.T) {
	required := map[string][]string{}
	for _, name := range files(t) {
		if path.Base(name) != "go.mod" {
			continue
		}
		folder := path.Dir(name)
		for _, r := range readGoMod(t, folder).Require {
			if !r.Indirect && !isWithin(r.Path, modulePath) {
				required[r.Path] = append(required[r.Path], strings.Replace(folder, ".", "root", 1))
			}
		}
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	reportViolations(t, undocumentedDependencies(required, string(page)))
}

// undocumentedDependencies compares the folders of the modules that require each dependency with the rows of
// the page: | `dependency` | folders | reason |.
func undocumentedDependencies(required map[string][]string, page string) (violations []string) {
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		name := strings.Trim(cells[1], " `")
		folders := strings.Split(strings.TrimSpace(cells[2]), ", ")
		slices.Sort(folders)
		slices.Sort(required[name])
		if !slices.Equal(folders, required[name]) {
			violations = append(violations, fmt.Sprintf("docs/dependencies.md: %s is required by %v, not by %v",
				name, required[name], folders))
		}
		if strings.TrimSpace(cells[3]) == "" {
			violations = append(violations, fmt.Sprintf("docs/dependencies.md: %s has no reason", name))
		}
		delete(required, name)
	}
	for name, folders := range required {
		violations = append(violations, fmt.Sprintf("docs/dependencies.md lacks %s, which %v require", name,
			folders))
	}
	return violations
}
