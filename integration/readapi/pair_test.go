package readapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/readapi"
)

const (
	testdata = "../../testdata/"
	group    = "demo.crdcache.dev"
)

var plurals = []string{"environments", "releases", "routes", "workloads"}

// pair is a real API server and a readapi server with the same objects.
type pair struct {
	real, ours *rest.Config
	storage    *readapi.Storage
}

// newPair fills both from the project's own manifests. It needs a server that answers as readapi does.
func newPair(t *testing.T) *pair {
	t.Helper()
	harness.Needs(t, harness.WatchList, harness.SelectableFields, harness.Wording)
	harness.InstallCRDs(t, harness.Read(t, testdata+"crds")...)
	harness.Apply(t, harness.Read(t, testdata+"objects")...)
	p := &pair{real: harness.Config(t), storage: readapi.NewStorage(readapi.StorageOptions{})}
	err := p.storage.SetType(readapi.Type{
		Names:    crd.Names{Plural: "namespaces", Kind: "Namespace", ShortNames: []string{"ns"}},
		Versions: []readapi.Version{{Name: "v1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.copy(t, crd.GVR)
	p.copy(t, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	for _, plural := range plurals {
		p.copy(t, schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural})
	}
	server := httptest.NewServer(readapi.NewHandler(p.storage, readapi.HandlerOptions{}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	p.ours = &rest.Config{Host: server.URL, QPS: -1}
	return p
}

// copy takes all objects of a type over.
func (p *pair) copy(t *testing.T, gvr schema.GroupVersionResource) {
	t.Helper()
	client, err := dynamic.NewForConfig(p.real)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if _, err := p.storage.Restore(&list.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
}

// answer is a response whose body has been read.
type answer struct {
	code   int
	header http.Header
	body   string
}

// ask sends one request to a server.
func ask(t *testing.T, config *rest.Config, method, path string, header http.Header) answer {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute/3)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header.Clone()
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

var (
	// moments are what depends on when something was asked.
	moments = regexp.MustCompile(`"(\d+[ydhms])+"`)
	// current is how far a server is: the real one has seen more than the objects.
	current = regexp.MustCompile(`current: \d+`)
)

// comparable leaves out what two servers cannot have in common: how far they are, and the time of day.
func comparableJSON(t *testing.T, body string) any {
	t.Helper()
	body = current.ReplaceAllString(moments.ReplaceAllString(body, `"AGE"`), "current: N")
	var content any
	if err := json.Unmarshal([]byte(body), &content); err != nil {
		return body
	}
	if object, ok := content.(map[string]any); ok {
		maskVersions(object)
	}
	return content
}

// maskVersions hides the resource version of lists and tables, and what is derived of it.
func maskVersions(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	if object["kind"] == "PartialObjectMetadataList" && object["items"] == nil {
		object["items"] = []any{} // null there, for no reason that anybody could rely on
	}
	if metadata == nil || object["items"] == nil && object["kind"] != "Table" {
		return
	}
	metadata["resourceVersion"] = "N"
	if text, _ := metadata["continue"].(string); text != "" {
		metadata["continue"] = "TOKEN"
	}
}
