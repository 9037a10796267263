package controllerruntime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/test/integration/harness"
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
		must(t, os.WriteFile(copied, []byte(source), 0o600))
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
	must(t, err)
	overlayFile := filepath.Join(temporary, "overlay.json")
	must(t, os.WriteFile(overlayFile, description, 0o600))
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

// TestKind runs a source of events for each form of a type. The type is installed after the sources start,
// deleted, and installed again.
func TestKind(t *testing.T) {
	w := widgets{schema.GroupVersion{Group: harness.Group(t), Version: "v1"}}
	namespace := harness.Namespace(t)
	forms := map[string]func() client.Object{"unstructured": w.unstructured, "metadata": w.metadata,
		"typed": w.typed}
	shared := startCache(t, cache.Options{Scheme: w.scheme()})
	events := map[string]chan string{}
	for name, form := range forms {
		events[name] = make(chan string, 100)
		startKind(t, shared, form(), events[name])
	}
	definition := harness.NewCRD(w.Group, "Widget")
	for _, color := range []string{"red", "blue"} {
		t.Run("installed", func(t *testing.T) {
			harness.InstallCRDs(t, definition)
			harness.Apply(t, w.new(namespace, "a", color))
			for name, form := range forms {
				awaitEvent(t, events[name], name, "create a")
				o := form()
				if err := shared.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "a"},
					o); err != nil {
					t.Errorf("Get into a %s: %v", name, err)
				}
				if typed, ok := o.(*widget); ok && typed.Spec.Color != color {
					t.Errorf("the widget is %q, want %q", typed.Spec.Color, color)
				}
			}
		})
		for name := range forms {
			awaitEvent(t, events[name], name, "delete a")
		}
	}
}

// TestScopeChanges checks reads of a type that is installed again with another scope.
func TestScopeChanges(t *testing.T) {
	w := widgets{schema.GroupVersion{Group: harness.Group(t), Version: "v1"}}
	namespace := harness.Namespace(t)
	shared := startCache(t, cache.Options{Scheme: w.scheme()})
	definition := harness.NewCRD(w.Group, "Widget")
	for _, scope := range []string{"Namespaced", "Cluster", "Namespaced"} {
		t.Run(scope, func(t *testing.T) {
			must(t, unstructured.SetNestedField(definition.Object, scope, "spec", "scope"))
			harness.InstallCRDs(t, definition)
			object := w.new(namespace, "a", "red")
			if scope == "Cluster" {
				object.SetNamespace("")
			}
			harness.Apply(t, object)
			for _, form := range []func() client.Object{w.unstructured, w.metadata, w.typed} {
				harness.Eventually(t, func(ctx context.Context) error {
					return shared.Get(ctx, client.ObjectKeyFromObject(object), form())
				})
				// Cluster-scoped types ignore the namespace.
				err := shared.Get(t.Context(), client.ObjectKey{Namespace: "elsewhere", Name: "a"}, form())
				if scope == "Cluster" && err != nil || scope == "Namespaced" && !apierrors.IsNotFound(err) {
					t.Errorf("Get() of a %T with another namespace = %v", form(), err)
				}
			}
		})
	}
}

func awaitEvent(t *testing.T, events <-chan string, client, want string) {
	t.Helper()
	harness.Eventually(t, func(ctx context.Context) error {
		select {
		case got := <-events:
			if got != want {
				t.Errorf("%s: got %q, want %q", client, got, want)
			}
			return nil
		default:
			return fmt.Errorf("%s: timeout before %q", client, want)
		}
	})
}

// startCache runs a cache until the test ends.
func startCache(t *testing.T, options cache.Options) cache.Cache {
	t.Helper()
	c, err := controllerruntime.NewCache(harness.Config(t), options)
	must(t, err)
	runCache(t, c)
	return c
}

// startKind runs a source of events until the test ends, like a controller. It sends created and deleted
// objects to events.
func startKind(t *testing.T, c cache.Cache, object client.Object, events chan<- string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	kind := source.Kind(c, object, handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent,
			_ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			events <- "create " + e.Object.GetName()
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent,
			_ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			events <- "delete " + e.Object.GetName()
		},
	})
	must(t, kind.Start(ctx, queue))
	synced := make(chan error, 1)
	go func() { synced <- kind.WaitForSync(ctx) }() // ended by cancel
	t.Cleanup(func() {
		cancel()
		queue.ShutDown()
		if err := <-synced; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
