package guard

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
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
	direct:    []string{"k8s.io/client-go", "k8s.io/apimachinery", "sigs.k8s.io/yaml", "github.com/spf13/pflag"},
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

// leakingReplaces lists the modules of a workspace whose replace lines would apply to the whole workspace.
// The workspace excludes the sandbox, which replaces k8s.io/*: with it, the library's tests would use
// another client-go than the root go.mod. Replacing one of our modules by its folder is harmless.
func leakingReplaces(workspace map[string]goMod) []string {
	var violations []string
	for dir, m := range workspace {
		for _, r := range m.Replace {
			if !isWithin(r.Old.Path, modulePath) {
				violations = append(violations,
					fmt.Sprintf("go.work uses %s, which replaces %s for every module of the workspace",
						dir, r.Old.Path))
			}
		}
	}
	slices.Sort(violations)
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
}

func TestWorkspace(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, "go.work")); os.IsNotExist(err) {
		return // without a workspace, no replacement can leak
	}
	var work struct{ Use []struct{ DiskPath string } }
	if err := json.Unmarshal([]byte(goCommand(t, ".", "work", "edit", "-json", "go.work")),
		&work); err != nil {
		t.Fatal(err)
	}
	modules := map[string]goMod{}
	for _, use := range work.Use {
		modules[use.DiskPath] = readGoMod(t, use.DiskPath)
	}
	reportViolations(t, leakingReplaces(modules))
}

// TestNestedModules checks that the path of each nested module matches its folder.
func TestNestedModules(t *testing.T) {
	for _, name := range files(t) {
		if dir := path.Dir(name); path.Base(name) == "go.mod" && dir != "." {
			if m := readGoMod(t, dir); m.Module.Path != path.Join(modulePath, dir) {
				t.Errorf("%s: module path is %q, want %q", name, m.Module.Path, path.Join(modulePath, dir))
			}
		}
	}
}

func TestModulePolicyViolations(t *testing.T) {
	const validGoMod = `{"Module": {"Path": "m"}, "Go": "1.26.0", "Require": [{"Path": "need", "Version": "v1.0.0"}]}`
	tests := map[string]struct {
		goMod string
		want  []string
	}{
		"sound": {validGoMod, nil},
		"other path": {`{"Module": {"Path": "n"}, "Go": "1.26.0", "Require": [{"Path": "need"}]}`,
			[]string{"module path"}},
		"other go": {`{"Module": {"Path": "m"}, "Go": "1.25", "Require": [{"Path": "need"}]}`,
			[]string{"go version"}},
		"replace": {
			`{"Module": {"Path": "m"}, "Go": "1.26.0", "Require": [{"Path": "need"}], "Replace": [{"Old": {"Path": "x"}}]}`, []string{"replaces x"}},
		"tool": {
			`{"Module": {"Path": "m"}, "Go": "1.26.0", "Require": [{"Path": "need"}], "Tool": [{"Path": "x/cmd"}]}`, []string{"tool x/cmd"}},
		"missing": {`{"Module": {"Path": "m"}, "Go": "1.26.0"}`, []string{"need is not a direct"}},
		"indirect": {
			`{"Module": {"Path": "m"}, "Go": "1.26.0", "Require": [{"Path": "need", "Indirect": true}]}`,
			[]string{"need is not a direct"}},
		"banned": {
			`{"Module": {"Path": "m"}, "Go": "1.26.0", "Require": [{"Path": "need"}, {"Path": "bad.example/x/server/v3", "Indirect": true}]}`, []string{"too heavy"}},
		"similar name": {
			`{"Module": {"Path": "m"}, "Go": "1.26.0", "Require": [{"Path": "need"}, {"Path": "bad.example/xy"}]}`, nil},
	}
	policy := modulePolicy{path: "m", goVersion: "1.26.0", direct: []string{"need"},
		banned: []bannedImport{{"bad.example/x", "too heavy"}}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var m goMod
			if err := json.Unmarshal([]byte(tt.goMod), &m); err != nil {
				t.Fatal(err)
			}
			expectViolations(t, policy.violations(m), tt.want...)
		})
	}
}

func TestLeakingReplaces(t *testing.T) {
	modules := func(replaced string) map[string]goMod {
		var m goMod
		m.Replace = append(m.Replace, struct{ Old struct{ Path string } }{struct{ Path string }{replaced}})
		return map[string]goMod{".": {}, "./nested": m}
	}
	expectViolations(t, leakingReplaces(modules(modulePath)))
	expectViolations(t, leakingReplaces(modules("k8s.io/client-go")), "./nested, which replaces k8s.io/client-go")
}

// TestSandboxWouldLeak applies the workspace guard to the real sandbox module.
func TestSandboxWouldLeak(t *testing.T) {
	if violations := leakingReplaces(map[string]goMod{"./sandbox": readGoMod(t, "sandbox")}); len(violations) == 0 {
		t.Error("the sandbox module has no replacements, so it could be in the workspace")
	}
}
