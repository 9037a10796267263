package guard

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// goMod is the part of the output of go mod edit -json that the guards need.
type goMod struct {
	Module  struct{ Path string }
	Go      string
	Require []struct {
		Path     string
		Version  string
		Indirect bool
	}
	Replace []struct{ Old struct{ Path string } }
	Tool    []struct{ Path string }
}

// modulePolicy is the required content of the root go.mod.
type modulePolicy struct {
	path      string
	goVersion string
	direct    []string       // modules that have to be direct requirements
	banned    []bannedImport // modules that must not be required, not even indirectly
}

var rootPolicy = modulePolicy{
	path:      modulePath,
	goVersion: "1.26.0",
	direct:    []string{"k8s.io/client-go", "k8s.io/apimachinery", "sigs.k8s.io/yaml"},
	banned: []bannedImport{
		{"k8s.io/kubernetes", "the API server belongs to the sandbox module; it only builds with replace lines"},
		{"k8s.io/apiserver", "a part of the sandbox module's API server"},
		{"k8s.io/component-base", "a part of the sandbox module's API server"},
		{"go.etcd.io/etcd", "etcd belongs to the sandbox module"},
		{"github.com/cert-manager", "its types are benchmark material"},
		{"sigs.k8s.io/controller-runtime",
			"a peer in the benchmark and an integration test, not a dependency"},
		{"honnef.co/go/tools", "a linter; it is run by version, not required"},
	},
}

// violations lists where m differs from the policy.
func (p modulePolicy) violations(m goMod) []string {
	var violations []string
	if m.Module.Path != p.path {
		violations = append(violations, fmt.Sprintf("module path is %q, want %q", m.Module.Path, p.path))
	}
	if m.Go != p.goVersion {
		violations = append(violations, fmt.Sprintf("go version is %q, want %q", m.Go, p.goVersion))
	}
	for _, r := range m.Replace {
		violations = append(violations,
			fmt.Sprintf("go.mod replaces %s: go install module/cmd@version refuses replace lines",
				r.Old.Path))
	}
	for _, tool := range m.Tool {
		violations = append(violations,
			fmt.Sprintf("go.mod has the tool %s: its requirements would become everybody's", tool.Path))
	}
	direct := map[string]bool{}
	for _, r := range m.Require {
		direct[r.Path] = !r.Indirect
		for _, b := range p.banned {
			if isWithin(r.Path, b.path) {
				violations = append(violations, fmt.Sprintf("go.mod requires %s: %s", r.Path, b.reason))
			}
		}
	}
	for _, want := range p.direct {
		if !direct[want] {
			violations = append(violations,
				fmt.Sprintf("%s is not a direct requirement (missing, or marked // indirect)", want))
		}
	}
	return violations
}

func readGoMod(t *testing.T, dir string) goMod {
	t.Helper()
	var m goMod
	if err := json.Unmarshal([]byte(goCommand(t, dir, "mod", "edit", "-json")), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRootModule(t *testing.T) {
	reportViolations(t, rootPolicy.violations(readGoMod(t, ".")))
	command := modulePolicy{path: modulePath + "/" + commandModule, goVersion: rootPolicy.goVersion,
		direct: append([]string{"github.com/spf13/pflag"}, rootPolicy.direct...)}
	mod := readGoMod(t, commandModule)
	mod.Replace = nil // a release removes these lines
	reportViolations(t, command.violations(mod))
}

// TestWorkspace verifies that the workspace of the tests has every module, that the linters and dependabot
// know all modules, and that the paths of nested modules match their folders.
func TestWorkspace(t *testing.T) {
	var work struct{ Use []struct{ DiskPath string } }
	edited := goCommand(t, "test/integration", "work", "edit", "-json", "go.work")
	if err := json.Unmarshal([]byte(edited), &work); err != nil {
		t.Fatal(err)
	}
	lists := map[string][]string{"Makefile": nil, ".github/dependabot.yml": nil}
	punctuation := strings.NewReplacer(`"`, " ", ",", " ", "[", " ", "]", " ")
	for name := range lists {
		lists[name] = strings.Fields(punctuation.Replace(string(readFile(t, name))))
	}
	var used, modules []string
	for _, use := range work.Use {
		used = append(used, path.Join("test/integration", use.DiskPath, "go.mod"))
	}
	for _, name := range files(t) {
		if path.Base(name) != "go.mod" {
			continue
		}
		if dir := path.Dir(name); dir != "." && (!slices.Contains(lists["Makefile"], dir) ||
			!slices.Contains(lists[".github/dependabot.yml"], "/"+dir)) {
			t.Errorf("the Makefile's MODULES or .github/dependabot.yml lacks %s", dir)
		} else if got, want := readGoMod(t, dir).Module.Path, path.Join(modulePath, dir); got != want {
			t.Errorf("%s: module path is %q, want %q", name, got, want)
		}
		modules = append(modules, name)
	}
	slices.Sort(used)
	slices.Sort(modules)
	if !slices.Equal(used, modules) {
		t.Errorf("test/integration/go.work uses %q, want %q", used, modules)
	}
}

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
	reportViolations(t, undocumentedDependencies(required, string(readFile(t, "docs/dependencies.md"))))
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
