package testcluster_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/test/testcluster"
)

var gvr = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func newInjector(t testing.TB) *testcluster.Injector {
	t.Helper()
	storage := apiserver.NewStorage(apiserver.StorageOptions{})
	err := storage.SetType(readapi.Type{Group: gvr.Group, Names: crd.Names{Plural: gvr.Resource,
		Kind: "Widget"}, Versions: []readapi.Version{{Name: gvr.Version}}})
	for _, name := range []string{"a", "b", "c"} {
		err = errors.Join(err, apitest.ApplyJSON(storage,
			[]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"`+name+`"}}`)))
	}
	noError(t, err)
	return testcluster.NewInjector(readapi.NewHandler(storage, readapi.HandlerOptions{}))
}

// transports returns the two ways to reach a handler. A fault must have the same effect on both.
func transports(t *testing.T, i *testcluster.Injector) map[string]*rest.Config {
	server := httptest.NewServer(i)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return map[string]*rest.Config{"socket": {Host: server.URL, QPS: -1}, "in process": readapi.Config(i)}
}

func TestListEffects(t *testing.T) {
	held := make(chan struct{})
	close(held)
	tests := map[string]struct {
		effect testcluster.Effect
		want   func(error) bool
	}{
		"delay":   {testcluster.Delay(time.Millisecond), func(err error) bool { return err == nil }},
		"hold":    {testcluster.Hold(held), func(err error) bool { return err == nil }},
		"expired": {testcluster.Expired(), apierrors.IsResourceExpired},
		"throttle": {testcluster.Status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "no"),
			apierrors.IsTooManyRequests},
		"fail": {testcluster.Fail(), apierrors.IsInternalError},
		"forbid": {testcluster.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "you may not"),
			apierrors.IsForbidden},
		"cut": {testcluster.Cut(0, 40), func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		"corrupt": {testcluster.Corrupt(0), func(err error) bool {
			return err != nil &&
				strings.Contains(err.Error(), "invalid character '#'")
		}},
	}
	i := newInjector(t)
	for way, config := range transports(t, i) {
		client, err := dynamic.NewForConfig(config)
		noError(t, err)
		for name, tt := range tests {
			t.Run(way+" "+name, func(t *testing.T) {
				remove := i.Add(testcluster.Fault{Effect: tt.effect})
				_, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
				if !tt.want(err) {
					t.Errorf("error = %v, want the fault's error", err)
				}
				remove()
				if _, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{}); err != nil {
					t.Errorf("List() after the fault was removed: %v", err)
				}
			})
		}
	}
}

// TestDrop verifies that a dropped request gets no response. It uses net/http, because client-go would retry
// for ten seconds.
func TestDrop(t *testing.T) {
	i := newInjector(t)
	i.Add(testcluster.Fault{Effect: testcluster.Drop()})
	for way, config := range transports(t, i) {
		client, err := rest.HTTPClientFor(config)
		noError(t, err)
		response, err := client.Get(config.Host + "/version")
		if err == nil {
			response.Body.Close()
			t.Errorf("%s: the client got a response, want an error", way)
		}
	}
}

// TestStall verifies that the part before the fault arrives. Then no data follows, and the response does not
// end.
func TestStall(t *testing.T) {
	i := newInjector(t)
	i.Add(testcluster.Fault{Effect: testcluster.Stall(1, 8)})
	for transport, config := range transports(t, i) {
		client, err := rest.HTTPClientFor(config)
		noError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		url := config.Host + "/apis/example.com/v1/widgets?watch=1"
		response := get(ctx, t, client, url)
		defer response.Body.Close()
		body := bufio.NewReader(response.Body)
		part := make([]byte, 8)
		_, lineErr := body.ReadBytes('\n')
		_, partErr := io.ReadFull(body, part)
		if string(part) != `{"type":` || lineErr != nil || partErr != nil {
			t.Errorf("%s: after one line, the client read %q, %v, %v, want the forwarded part", transport, part,
				lineErr, partErr)
		}
		cancel()
		if _, err := body.ReadByte(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: reading after the cancellation = %v, want context.Canceled", transport, err)
		}
	}
}

// get returns the response to a request, whose body the caller closes.
func get(ctx context.Context, t *testing.T, client *http.Client, url string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	noError(t, err)
	response, err := client.Do(r)
	noError(t, err)
	return response
}

// TestWatchEffects verifies the lines of a watch-list of three objects for each effect.
func TestWatchEffects(t *testing.T) {
	const allEvents = "event event event bookmark"
	tests := map[string]struct {
		effect testcluster.Effect
		want   string
	}{
		"cut between events": {testcluster.Cut(2, 0), "event event cut"},
		"cut in an event":    {testcluster.Cut(1, 20), "event part cut"},
		"corrupt":            {testcluster.Corrupt(1), "event odd event bookmark"},
		"expired":            {testcluster.ExpiredEvent(), "error end"},
		"stall":              {testcluster.Stall(1, 20), "event"},
		"no bookmarks":       {testcluster.DropBookmarks(), "event event event"},
		"nothing":            {testcluster.Delay(0), allEvents},
	}
	i := newInjector(t)
	for transport, config := range transports(t, i) {
		client, err := rest.HTTPClientFor(config)
		noError(t, err)
		for name, tt := range tests {
			t.Run(transport+" "+name, func(t *testing.T) {
				defer i.Add(testcluster.Fault{Match: testcluster.Match{Verbs: []string{"watch-list"},
					Resource: gvr.Resource}, Effect: tt.effect})()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				url := config.Host +
					"/apis/example.com/v1/widgets?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
				response := get(ctx, t, client, url)
				defer response.Body.Close()
				if got := lines(response.Body, len(strings.Fields(tt.want))); got != tt.want {
					t.Errorf("the watch sent the lines %q, want %q", got, tt.want)
				}
			})
		}
	}
}

// lines describes the first n lines of a watch, and its end.
func lines(body io.Reader, n int) string {
	var got []string
	reader := bufio.NewReader(body)
	for len(got) < n {
		line, err := reader.ReadString('\n')
		switch {
		case strings.HasPrefix(line, `{"type":"ADDED"`) && err == nil:
			got = append(got, "event")
		case strings.HasPrefix(line, `{"type":"BOOKMARK"`) && err == nil:
			got = append(got, "bookmark")
		case strings.Contains(line, `"type":"ERROR"`):
			got = append(got, "error")
		case strings.HasPrefix(line, "#") && err == nil:
			got = append(got, "odd")
		case line != "":
			got = append(got, "part")
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			got = append(got, "cut")
		} else if err != nil {
			got = append(got, "end")
		}
		if err != nil {
			break
		}
	}
	return strings.Join(got, " ")
}

func TestTimesAndMatch(t *testing.T) {
	injector := newInjector(t)
	statusOf := func(path string) int {
		w := httptest.NewRecorder()
		injector.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	injector.Add(testcluster.Fault{Match: testcluster.Match{Resource: "widgets"},
		Effect: testcluster.Fail(), Times: 2})
	injector.Add(testcluster.Fault{Match: testcluster.Match{Path: "/version"}, Effect: testcluster.Expired()})
	injector.Add(testcluster.Fault{Match: testcluster.Match{Verbs: []string{"get"}},
		Effect: testcluster.Status(418, "Teapot", "tea")})
	for _, tt := range []struct {
		path string
		code int
	}{
		{"/apis/example.com/v1/widgets", 500}, {"/apis/example.com/v1/widgets/a", 418}, {"/version",
			410}, {"/apis", 200},
		{"/apis/example.com/v1/widgets", 500}, {"/apis/example.com/v1/widgets", 200},
	} {
		if got := statusOf(tt.path); got != tt.code {
			t.Errorf("%s: %d, want %d", tt.path, got, tt.code)
		}
	}
	injector.Clear()
	if got := statusOf("/version"); got != 200 {
		t.Errorf("status after Clear = %d, want 200", got)
	}
	remove := injector.Add(testcluster.Fault{Match: testcluster.Match{Verbs: testcluster.Reads},
		Effect: testcluster.Fail(), Times: 2})
	for _, query := range []string{"watch=true", "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"} {
		if got := statusOf("/apis/example.com/v1/widgets?" + query); got != 500 {
			t.Errorf("%s: %d, want the fault of all reads", query, got)
		}
	}
	remove()
	if n := injector.Count(testcluster.Match{Resource: "widgets", Verbs: []string{"list"}}); n != 3 {
		t.Errorf("Count() = %d lists, want 3", n)
	}
	if err := injector.Await(t.Context(), testcluster.Match{}, 7); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := injector.Await(ctx, testcluster.Match{}, 99); !errors.Is(err, context.Canceled) {
		t.Errorf("Await() = %v, want context.Canceled", err)
	}
}

// TestFaultsEndWithRequest verifies that faults that block end when the client gives up.
func TestFaultsEndWithRequest(t *testing.T) {
	for name, effect := range map[string]testcluster.Effect{"hang": testcluster.Hang(),
		"delay": testcluster.Delay(time.Hour), "hold": testcluster.Hold(nil), "stall": testcluster.Stall(0,
			0), "stall in the middle": testcluster.Stall(0, 40)} {
		t.Run(name, func(t *testing.T) {
			i := newInjector(t)
			i.Add(testcluster.Fault{Effect: effect})
			client, err := dynamic.NewForConfig(readapi.Config(i))
			noError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { // ends with the request's arrival, or with the test
				_ = i.Await(t.Context(), testcluster.Match{}, 1)
				cancel()
			}()
			if _, err := client.Resource(gvr).List(ctx, metav1.ListOptions{}); !errors.Is(err,
				context.Canceled) {
				t.Errorf("List() = %v, want context.Canceled", err)
			}
		})
	}
}
