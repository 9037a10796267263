package controllerruntime_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// suite is one of controller-runtime's suites.
type suite struct {
	// folder is below pkg. files are its files; the value says whether a file creates caches.
	folder string
	files  map[string]bool
	// added are files to add, by name.
	added map[string]string
}

var cacheSuite = suite{folder: "cache", files: map[string]bool{
	"cache_suite_test.go":    false,
	"cache_test.go":          true,
	"informer_cache_test.go": true,
}}

// consistencySuite is the suite of EnableReadYourWritesConsistency. Its file with BeforeSuite is replaced,
// because it also installs types for other tests.
var consistencySuite = suite{folder: "client", files: map[string]bool{"consistency_envtest_test.go": true},
	added: map[string]string{"suite_test.go": `package client_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

var cfg *rest.Config

func TestSource(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Consistency Suite")
}

var _ = BeforeSuite(func() {
	var err error
	cfg, err = (&envtest.Environment{}).Start()
	Expect(err).NotTo(HaveOccurred())
})
`}}

// cacheImport is the line after which our import is added.
const cacheImport = `"sigs.k8s.io/controller-runtime/pkg/cache"`

// controllerRuntimeNew matches calls that create a cache, controllerRuntimeNewClient those that create a
// client.
var (
	controllerRuntimeNew       = regexp.MustCompile(`\bcache\.New\b`)
	controllerRuntimeNewClient = regexp.MustCompile(`\bclient\.New\(`)
)

// replaceNew makes a file of the suite create its caches and clients with NewCache and NewClient of another
// package.
func replaceNew(source []byte, importPath string) ([]byte, error) {
	if !bytes.Contains(source, []byte(cacheImport)) || !controllerRuntimeNew.Match(source) {
		return nil, fmt.Errorf("the file does not import %s, or never calls its New", cacheImport)
	}
	source = bytes.Replace(source, []byte(cacheImport),
		[]byte(cacheImport+"\n\treplaced "+`"`+importPath+`"`), 1)
	source = controllerRuntimeNewClient.ReplaceAll(source, []byte("replaced.NewClient("))
	return controllerRuntimeNew.ReplaceAll(source, []byte("replaced.NewCache")), nil
}

// build builds the suite with the caches and clients of another package and returns the program. The sources
// are in the module cache. The go command treats them as a package of this module. Its go.mod has their
// imports.
func (s suite) build(t *testing.T, importPath string) string {
	t.Helper()
	upstream := filepath.Join(goOutput(t, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/controller-runtime"),
		"pkg", s.folder)
	module := filepath.Dir(goOutput(t, "env", "GOMOD"))
	temporary := t.TempDir()
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	addFile := func(name, source string) {
		copied := filepath.Join(temporary, name)
		if err := os.WriteFile(copied, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(module, "controllerruntime", "stocksuite", name)] = copied
	}
	for name, source := range s.added {
		addFile(name, source)
	}
	for name, makesCaches := range s.files {
		source, err := os.ReadFile(filepath.Join(upstream, name))
		if err == nil && makesCaches {
			source, err = replaceNew(source, importPath)
		}
		if err != nil {
			t.Fatalf("%s of the suite: %v", name, err)
		}
		addFile(name, string(source))
	}
	description, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(temporary, "overlay.json")
	if err := os.WriteFile(overlayFile, description, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(temporary, "suite.test")
	goOutput(t, "test", "-c", "-vet=off", "-overlay", overlayFile, "-o", program, "./stocksuite")
	return program
}

// goOutput runs the go command in the folder of this package.
func goOutput(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}
