package dynamicinformer_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/compat/dynamicinformer"
	crdcache "github.com/crdcache/crdcache/dynamicinformer"
)

func byColor(obj any) ([]string, error) {
	return []string{obj.(*unstructured.Unstructured).GetLabels()["color"]}, nil
}

func TestInformerWithoutFactory(t *testing.T) {
	onEach(t, func(t *testing.T, client func(...*unstructured.Unstructured) dynamic.Interface, api api) {
		c := client(widget("a", "one", "red"), widget("b", "two", "blue"))
		informer := api.informer(c, widgets, "", 0, cache.Indexers{"color": byColor}, nil)
		if informer.Informer() != informer.Informer() {
			t.Error("the second call of Informer returned another informer")
		}
		byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		if err := informer.Informer().AddIndexers(byNamespace); err != nil {
			t.Errorf("AddIndexers() with an index named namespace = %v", err)
		}
		for _, taken := range []cache.Indexers{byNamespace, {"color": byColor}} {
			if err := informer.Informer().AddIndexers(taken); err == nil {
				t.Errorf("AddIndexers() with an existing index succeeded, want an error: %v", taken)
			}
		}
		events := recordEvents(t, informer.Informer())
		stop, done := make(chan struct{}), make(chan struct{})
		go func() { // ended by stop
			defer close(done)
			informer.Informer().Run(stop)
		}()
		nextEvent(t, events)
		nextEvent(t, events)
		for index, value := range map[string]string{"color": "red", cache.NamespaceIndex: "a"} {
			if keys, err := informer.Informer().GetIndexer().IndexKeys(index, value); err != nil ||
				!cmp.Equal(keys, []string{"a/one"}) {
				t.Errorf("the index %s has %v, %v under %s; want a/one", index, keys, err, value)
			}
		}
		if list, err := informer.Lister().ByNamespace("b").List(labels.Everything()); err != nil ||
			len(list) != 1 {
			t.Errorf("the lister has %v, %v in namespace b; want one object", list, err)
		}
		close(stop)
		<-done
	})
}

// TestBrokenInformer verifies that an informer that cannot work never syncs, and reports the reason.
func TestBrokenInformer(t *testing.T) {
	client := clients["fake"](t)
	tests := []struct {
		reason   string
		client   dynamic.Interface
		gvr      schema.GroupVersionResource
		indexers cache.Indexers
		want     string
	}{
		{"no client", nil, widgets, nil, "Client"},
		{"no version", client, schema.GroupVersionResource{Group: "example.com", Resource: "widgets"}, nil,
			"lacks a version"},
		{"no resource", client, schema.GroupVersionResource{Group: "example.com", Version: "v1"}, nil,
			"lacks a version or a resource"},
		{"nil index function", client, widgets, cache.Indexers{"color": nil}, `"color" is nil`},
		{"another index by namespace", client, widgets, cache.Indexers{cache.NamespaceIndex: byColor},
			`"namespace" has another function`},
		{"a nil index by namespace", client, widgets, cache.Indexers{cache.NamespaceIndex: nil},
			`"namespace" has another function`},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			generic := dynamicinformer.NewFilteredDynamicInformer(test.client, test.gvr, "", 0,
				test.indexers, nil)
			informer := generic.Informer()
			failures := make(chan error, 1)
			if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
				select {
				case failures <- err:
				default:
				}
			}); err != nil {
				t.Fatal(err)
			}
			stop, done := make(chan struct{}), make(chan struct{})
			go func() { // ended by stop
				defer close(done)
				informer.Run(stop)
			}()
			if err := <-failures; !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %q, want it to contain %q", err, test.want)
			}
			if informer.HasSynced() {
				t.Error("HasSynced() = true for an informer that cannot work")
			}
			if list, err := generic.Lister().List(labels.Everything()); err != nil || len(list) != 0 {
				t.Errorf("the lister returns %v, %v; want nothing", list, err)
			}
			close(stop)
			<-done
		})
	}
}

// TestStorage checks that objects are stored unchanged, or packed if Packed is set.
func TestStorage(t *testing.T) {
	client := clients["fake"](t)
	for want, client := range map[crdcache.StorageMode]dynamic.Interface{
		crdcache.StorageObject: client, crdcache.StoragePacked: dynamicinformer.Packed(client),
	} {
		f := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		informer, ok := f.ForResource(widgets).(*crdcache.Informer)
		if !ok || informer.Stats().Storage != want.String() {
			t.Errorf("the storage is %v, want %v", informer.Stats().Storage, want)
		}
	}
}

// minUpstreamTests is the number of client-go's tests in 0.36, including subtests.
const minUpstreamTests = 12

// TestUpstream runs client-go's own tests with this package. Their source is in the module cache.
func TestUpstream(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const stock = `"k8s.io/client-go/dynamic/dynamicinformer"`
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", stock[1:len(stock)-1]).Output()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(string(bytes.TrimSpace(dir)), "informer_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(source, []byte(stock)) {
		t.Fatalf("client-go's test does not import %s", stock)
	}
	source = bytes.Replace(source, []byte(stock),
		[]byte(`"github.com/crdcache/crdcache/adapters/compat/dynamicinformer"`), 1)
	temporary := t.TempDir()
	adapted, overlay := filepath.Join(temporary, "informer_test.go"), filepath.Join(temporary, "overlay.json")
	if err := os.WriteFile(adapted, source, 0o600); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	files, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(here, "upstream", "informer_test.go"): adapted}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, files, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(temporary, "upstream.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o",
		program, "./upstream").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// client-go's tests change objects after the sync without waiting for the watch. Its fake client loses
	// changes before the watch, so a slow machine may need a second attempt.
	var out []byte
	for range 3 {
		out, err = exec.CommandContext(t.Context(), program, "-test.v").CombinedOutput()
		if err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	passed := len(regexp.MustCompile(`(?m)^\s*--- PASS: `).FindAll(out, -1))
	if passed < minUpstreamTests {
		t.Errorf("%d tests passed, want at least %d:\n%s", passed, minUpstreamTests, out)
	}
	t.Logf("%d of client-go's tests passed", passed)
}
