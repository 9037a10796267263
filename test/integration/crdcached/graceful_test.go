package crdcached_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestGracefulRestart restarts crdcached gracefully. client-go's informers must not list again, and a client
// must be able to continue a list.
func TestGracefulRestart(t *testing.T) {
	t.Run("without changes", func(t *testing.T) {
		testGracefulRestart(t, false)
	})
	t.Run("with changes meanwhile, and a disk", func(t *testing.T) {
		testGracefulRestart(t, true)
	})
}

func testGracefulRestart(t *testing.T, changes bool) {
	widgets := installWidgets(t)
	namespace := harness.Namespace(t)
	server := newDaemon(t, widgets)
	if changes {
		server.configText += fmt.Sprintf("persistenceDirectory: %q\n", t.TempDir())
	}
	server.restart()
	objects := adminClient(t).Resource(widgets).Namespace(namespace)
	create := func(name string) {
		t.Helper()
		_, err := objects.Create(t.Context(), newObject(widgets, name, "1"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range 3 {
		create(fmt.Sprint("before-", n))
	}
	var lists atomic.Int64
	var informers []cache.SharedIndexInformer
	for range 3 {
		informer := newCountedInformer(t, server.config(), widgets, &lists)
		harness.Eventually(t, func(context.Context) error {
			return checkCached(informer, namespace+"/before-2")
		})
		informers = append(informers, informer)
	}
	path := "/apis/" + widgets.Group + "/v1/namespaces/" + namespace + "/widgets?limit=2"
	pages := &listPages{T: t, config: server.config(), path: path}
	pages.readNext()
	listed := lists.Load()

	if err := server.server.Stop(); err != nil {
		t.Error(err)
	}
	// The cluster's resource version increases while the server is down.
	others := adminClient(t).Resource(configMaps).Namespace(namespace)
	_, err := others.Create(t.Context(), newObject(configMaps, "other", "1"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if changes {
		create("meanwhile")
	}
	server.restart()
	create("after")
	for _, informer := range informers {
		harness.Eventually(t, func(context.Context) error {
			if changes {
				if err := checkCached(informer, namespace+"/meanwhile"); err != nil {
					return err
				}
			}
			return checkCached(informer, namespace+"/after")
		})
	}
	if again := lists.Load() - listed; again != 0 {
		t.Errorf("the informers listed %d times after the restart, want 0", again)
	}
	if pages.readNext(); len(pages.names) != 3 {
		t.Errorf("the pages have the objects %v, want 3", pages.names)
	}
}

// newCountedInformer runs a client-go informer until the test ends and counts its lists.
func newCountedInformer(
	t *testing.T, config *rest.Config, gvr schema.GroupVersionResource, lists *atomic.Int64,
) cache.SharedIndexInformer {
	t.Helper()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			query := r.URL.Query()
			if err == nil && (query.Get("watch") == "" || query.Get("sendInitialEvents") == "true") {
				lists.Add(1)
			}
			return response, err
		})
	})
	informer := newDynamicInformer(t, config, gvr)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); informer.RunWithContext(ctx) }() // ended by cancel
	t.Cleanup(func() { cancel(); <-ended })
	return informer
}

// checkCached returns an error unless an informer has the object of a key.
func checkCached(informer cache.SharedIndexInformer, key string) error {
	if _, found, err := informer.GetStore().GetByKey(key); err != nil || !found {
		return fmt.Errorf("the informer has no %s: %v", key, err)
	}
	return nil
}

type listPages struct {
	*testing.T
	config        *rest.Config
	path          string
	names         []string
	version       string
	continueToken string
}

// readNext reads a page. All pages must have the same version.
func (p *listPages) readNext() {
	p.Helper()
	path := p.path
	if p.continueToken != "" {
		path += "&continue=" + url.QueryEscape(p.continueToken)
	}
	var list struct {
		Metadata struct{ ResourceVersion, Continue string }
		Items    []struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal(fetch(p.T, p.config, path), &list); err != nil {
		p.Fatal(err)
	}
	if version := list.Metadata.ResourceVersion; p.version != "" && p.version != version {
		p.Errorf("the page has version %s, and the previous page %s", version, p.version)
	}
	p.version, p.continueToken = list.Metadata.ResourceVersion, list.Metadata.Continue
	for _, item := range list.Items {
		p.names = append(p.names, item.Metadata.Name)
	}
}

func fetch(t *testing.T, config *rest.Config, path string) []byte {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v %s", path, response.Status, err, text)
	}
	return text
}
