package conformance

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// faultsTest is a test of Faults: maps reads ConfigMaps from a server through a client with injected faults.
type faultsTest struct {
	*testing.T
	ctx    context.Context
	faults *Faults
	maps   dynamic.ResourceInterface
}

func newFaultsTest(t *testing.T) *faultsTest {
	t.Helper()
	b := &faultsTest{T: t, faults: NewFaults(nil)}
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	config := apitest.New(t, apitest.ConfigMaps).Config()
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		b.faults.next = next
		return b.faults
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	b.maps = client.Resource(configMaps).Namespace("ns")
	return b
}

func (b *faultsTest) create(name, value string) *unstructured.Unstructured {
	b.Helper()
	obj, err := b.maps.Create(b.ctx, configMap(name, value), metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return obj
}

func (b *faultsTest) watch(options metav1.ListOptions) watch.Interface {
	b.Helper()
	w, err := b.maps.Watch(b.ctx, options)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(w.Stop)
	return w
}

// next receives the next event of a watch, and returns its description.
func next(w watch.Interface) string {
	event, open := <-w.ResultChan()
	if !open {
		return "end"
	}
	switch obj := event.Object.(type) {
	case *unstructured.Unstructured:
		return fmt.Sprint(event.Type, " ", obj.GetName(), value(obj))
	case *metav1.Status:
		return fmt.Sprint(event.Type, " ", obj.Code)
	}
	return fmt.Sprintf("%s %T", event.Type, event.Object)
}

func (b *faultsTest) expect(w watch.Interface, want ...string) {
	b.Helper()
	for _, event := range want {
		if got := next(w); got != event {
			b.Errorf("the next event of the watch is %q, want %q", got, event)
		}
	}
}

func TestFaults(t *testing.T) {
	b := newFaultsTest(t)
	obj := b.create("a", "1")
	from := metav1.ListOptions{ResourceVersion: obj.GetResourceVersion()}

	w := b.watch(from)
	b.faults.Bookmark("77")
	b.expect(w, "BOOKMARK ")
	b.faults.EndWatches()
	b.expect(w, "end")
	w = b.watch(from)
	b.faults.ExpireWatches()
	b.expect(w, "ERROR 410", "end")

	b.faults.RefuseWatchList()
	if _, err := b.maps.Watch(b.ctx, metav1.ListOptions{SendInitialEvents: ptr.To(true)}); err == nil {
		t.Error("a watch-list request succeeded, want an error")
	}
	b.faults.Fail(1, http.StatusInternalServerError)
	if _, err := b.maps.List(b.ctx, metav1.ListOptions{}); !apierrors.IsInternalError(err) &&
		!strings.Contains(fmt.Sprint(err), "injected") {
		t.Errorf("List() = %v, want the injected error", err)
	}

	release := b.faults.Hold()
	hurried, cancel := context.WithCancel(b.ctx)
	cancel()
	if _, err := b.maps.List(hurried, metav1.ListOptions{}); err == nil {
		t.Error("a blocked list request succeeded, want an error")
	}
	release()
	if _, err := b.maps.List(b.ctx, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if got := b.faults.Requests("watch"); got != 2 {
		t.Errorf("%d watches were counted, want 2", got)
	}
}

func TestBrokenWatchEndsInsideAnEvent(t *testing.T) {
	f := NewFaults(transport(func(*http.Request) (*http.Response, error) {
		reader, _ := io.Pipe()
		return &http.Response{StatusCode: http.StatusOK, Body: reader}, nil
	}))
	request := httptest.NewRequest(http.MethodGet, "/api/v1/configmaps?watch=true", nil)
	response, err := f.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	f.BreakWatches()
	body, err := io.ReadAll(response.Body)
	if err != io.ErrUnexpectedEOF || !strings.HasSuffix(string(body), `"obj`) {
		t.Errorf("the watch ends with %q, %v; want an incomplete event and io.ErrUnexpectedEOF", body, err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
