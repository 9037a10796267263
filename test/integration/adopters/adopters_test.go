// Package adopters_test changes real programs to use crdcache, and runs their own tests before and after.
package adopters_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

type program struct {
	module, version, sum string
	packages             []string
	// deleted is a file of testdata. Each line has a file of the program and declarations of it, T or
	// T.method; none mean the whole file. Deleted tests count calls of a fake cache, or test a deleted type.
	deleted string
	// edits are pairs of old and new text by file.
	edits map[string][]string
	// added are files of testdata by their path in the program. The files of measurement are also added to
	// the unchanged program, and not counted.
	added, measurement map[string]string
	// modules are the folders of our modules that the changed program requires, besides the root.
	modules []string
	// minTests is the minimum number of tests, so that the test fails if tests did not run.
	minTests int
}

var programs = map[string]program{
	"kro": {
		module: "github.com/kubernetes-sigs/kro", version: "v0.9.4",
		sum:      "h1:gynhldCLYW5x+M0c2Bf1ihoQTpNE68SKiXl1f6aX1kk=",
		packages: []string{"./pkg/watch", "./pkg/dynamiccontroller"},
		deleted:  "kro/deleted.txt",
		added: map[string]string{"pkg/watch/crdcache.go": "kro/watch.go.txt",
			"pkg/dynamiccontroller/crdcache.go": "kro/coordinator.go.txt"},
		modules:     []string{"adapters/controllerruntime", "adapters/metrics"},
		measurement: map[string]string{"pkg/watch/heap_test.go": "kro/heap_test.go.txt"},
		minTests:    80,
	},
	"Kyverno": {
		module: "github.com/kyverno/kyverno", version: "v1.19.1",
		sum:      "h1:/MkgFii3/VlQfKR1JpC9tVwNNVNQTt2S4U6qCsafsTU=",
		packages: []string{"./pkg/globalcontext/k8sresource"},
		edits: map[string][]string{"pkg/globalcontext/k8sresource/entry.go": {
			`"k8s.io/client-go/dynamic/dynamicinformer"`, `"github.com/crdcache/crdcache/adapters/compat/dynamicinformer"`,
			`NewFilteredDynamicInformer(dClient,`, `NewFilteredDynamicInformer(dynamicinformer.Packed(dClient),`,
		}},
		measurement: map[string]string{"pkg/globalcontext/k8sresource/heap_test.go": "kyverno/heap_test.go.txt"},
		minTests:    15,
	},
	"Gatekeeper": {
		module: "github.com/open-policy-agent/gatekeeper/v3", version: "v3.23.1",
		sum:      "h1:njHTm0SJ6ZEhhEgmQTpJKTGQbc99fSs4hGiEp1OIKck=",
		packages: []string{"./pkg/watch", "./pkg/cachemanager"},
		// The managers of its tests and of the measurement get the cache.
		edits: map[string][]string{
			"test/testutils/manager.go":             gatekeeperManager,
			"pkg/watch/manager_integration_test.go": gatekeeperManager,
			"pkg/watch/heap_test.go": {
				`"sigs.k8s.io/controller-runtime/pkg/cache"`, `"github.com/crdcache/crdcache/adapters/controllerruntime"`,
				`newCache cache.NewCacheFunc = cache.New`, `newCache = controllerruntime.NewCache`,
			},
		},
		deleted:     "gatekeeper/deleted.txt",
		added:       map[string]string{"pkg/watch/crdcache.go": "gatekeeper/watch.go.txt"},
		measurement: map[string]string{"pkg/watch/heap_test.go": "gatekeeper/heap_test.go.txt"},
		modules:     []string{"adapters/controllerruntime", "adapters/metrics"},
		minTests:    40,
	},
}

var gatekeeperManager = []string{
	`"k8s.io/client-go/rest"`, `"github.com/crdcache/crdcache/adapters/controllerruntime"
	"k8s.io/client-go/rest"`,
	`MapperProvider: apiutil.NewDynamicRESTMapper,`, `MapperProvider: apiutil.NewDynamicRESTMapper,
		NewCache:       controllerruntime.NewCache,`,
}

// TestPrograms runs the tests of each program with its own informers and with crdcache. The same tests must
// pass.
func TestPrograms(t *testing.T) {
	for name, p := range programs {
		t.Run(name, func(t *testing.T) {
			folder := p.copyModule(t)
			p.addFiles(t, folder, p.measurement)
			before := p.runTests(t, folder)
			if len(before.passed) < p.minTests {
				t.Fatalf("%d tests pass before the change, want at least %d", len(before.passed), p.minTests)
			}
			p.requireModules(t, folder)
			added, deleted := p.change(t, folder)
			after := p.runTests(t, folder)
			gone := slices.Concat(slices.Collect(maps.Values(p.deletions(t)))...)
			maps.DeleteFunc(before.passed, func(test string, _ bool) bool {
				name, _, _ := strings.Cut(test[strings.Index(test, " ")+1:], "/")
				return slices.Contains(gone, name)
			})
			for test := range before.passed {
				if !after.passed[test] {
					t.Errorf("%s passes with the program's own informers and fails with crdcache:\n%s", test,
						after.output[test])
				}
			}
			if after.goroutines > before.goroutines {
				t.Errorf("there are %d goroutines with the program's own informers, %d with crdcache", before.goroutines, after.goroutines)
			}
			if after.heap == 0 || after.heap >= before.heap {
				t.Errorf("an object takes %d bytes of heap with the program's own informers, %d with crdcache, want less", before.heap, after.heap)
			}
			t.Logf("%s %s: %d lines added, %d deleted; %d tests that it does not delete pass before the change, "+
				"%d after; an object takes %d bytes of heap, then %d; there are %d goroutines, then %d",
				name, p.version, added, deleted, len(before.passed), len(after.passed),
				before.heap, after.heap, before.goroutines, after.goroutines)
		})
	}
}

// copyModule copies the module from the module cache and returns the folder.
func (p program) copyModule(t *testing.T) string {
	t.Helper()
	var module struct{ Dir, Sum string }
	out := runGo(t, ".", "mod", "download", "-json", p.module+"@"+p.version)
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	if module.Sum != p.sum {
		t.Fatalf("%s has the sum %s, want %s", p.module, module.Sum, p.sum)
	}
	folder := filepath.Join(t.TempDir(), "program")
	if err := os.CopyFS(folder, os.DirFS(module.Dir)); err != nil {
		t.Fatal(err)
	}
	return folder
}

// change applies the deletions and edits, and adds files. It returns the numbers of lines of code that it
// adds and deletes, without those of measurement.
func (p program) change(t *testing.T, folder string) (added, deleted int) {
	t.Helper()
	for name, declarations := range p.deletions(t) {
		file := filepath.Join(folder, name)
		before, after := string(readFile(t, file)), "package "+path.Base(path.Dir(name))
		if declarations != nil {
			after = deleteDeclarations(t, before, declarations)
		}
		writeFile(t, file, []byte(after))
		if !strings.HasSuffix(name, "_test.go") {
			deleted += countCode(before) - countCode(after)
		}
	}
	for name, pairs := range p.edits {
		file := filepath.Join(folder, name)
		text := readFile(t, file)
		for i := 0; i < len(pairs); i += 2 {
			if !bytes.Contains(text, []byte(pairs[i])) {
				t.Fatalf("%s does not contain %q", name, pairs[i])
			}
			text = bytes.Replace(text, []byte(pairs[i]), []byte(pairs[i+1]), 1)
			if p.measurement[name] == "" {
				deleted += 1 + strings.Count(pairs[i], "\n")
				added += 1 + strings.Count(pairs[i+1], "\n")
			}
		}
		writeFile(t, file, text)
	}
	p.addFiles(t, folder, p.added)
	for name := range p.added {
		added += countCode(string(readFile(t, filepath.Join(folder, name))))
	}
	return added, deleted
}

// deletions returns the deleted declarations by file; nil for a whole file.
func (p program) deletions(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	if p.deleted == "" {
		return all
	}
	for line := range bytes.Lines(readFile(t, filepath.Join("testdata", p.deleted))) {
		fields := strings.Fields(string(line))
		all[fields[0]] = append(all[fields[0]], fields[1:]...)
	}
	return all
}

// requireModules requires crdcache from this repository.
func (p program) requireModules(t *testing.T, folder string) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	sums := filepath.Join(folder, "go.sum")
	for _, module := range append(p.modules, "") {
		ours, source := path.Join("github.com/crdcache/crdcache", module), filepath.Join(root, module)
		runGo(t, folder, "mod", "edit", "-require="+ours+"@v0.0.0", "-replace="+ours+"="+source)
		writeFile(t, sums, append(readFile(t, sums), readFile(t, filepath.Join(source, "go.sum"))...))
	}
}

func (p program) addFiles(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, source := range files {
		writeFile(t, filepath.Join(folder, name), readFile(t, filepath.Join("testdata", source)))
	}
}

// results are the results of a program's tests.
type results struct {
	passed map[string]bool
	output map[string]string
	// heap is the live heap in bytes per cached object.
	heap, goroutines int
}

var (
	heapPattern       = regexp.MustCompile(`heap per object: (\d+)`)
	goroutinesPattern = regexp.MustCompile(`goroutines: (\d+)`)
)

func (p program) runTests(t *testing.T, folder string) results {
	t.Helper()
	args := append([]string{"test", "-json", "-vet=off", "-count=1", "-timeout=10m"}, p.packages...)
	command := newGoCommand(t, folder, args...)
	out, testErr := command.Output()
	r := results{passed: map[string]bool{}, output: map[string]string{}}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		var event struct{ Action, Package, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue // output of the compiler
		}
		test := event.Package + " " + event.Test
		r.output[test] += event.Output
		if event.Action == "pass" && event.Test != "" {
			r.passed[test] = true
		}
		if found := heapPattern.FindStringSubmatch(event.Output); found != nil {
			r.heap, _ = strconv.Atoi(found[1]) // the match has only digits
		}
		if found := goroutinesPattern.FindStringSubmatch(event.Output); found != nil {
			r.goroutines, _ = strconv.Atoi(found[1])
		}
	}
	if testErr != nil {
		t.Logf("%s: %v\n%s", command, testErr, command.Stderr)
	}
	if len(r.passed) == 0 {
		t.Fatalf("no test passed:\n%s", out)
	}
	return r
}

// runGo runs the go command and returns its output.
func runGo(t *testing.T, folder string, args ...string) []byte {
	t.Helper()
	command := newGoCommand(t, folder, args...)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", command, err, out, command.Stderr)
	}
	return out
}

func newGoCommand(t *testing.T, folder string, args ...string) *exec.Cmd {
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir, command.Stderr = folder, &strings.Builder{}
	assets, err := filepath.Abs("../../../bin") // etcd and kube-apiserver, for envtest
	if err != nil {
		t.Fatal(err)
	}
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath", "KUBEBUILDER_ASSETS="+assets)
	return command
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func writeFile(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
