package dynamicinformer

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestPersistenceStatusAfterAList: no watch confirms the restored content, but a list does. It is then
// delivered, and not saved again.
func TestPersistenceStatusAfterAList(t *testing.T) {
	server, s := newServer(t), newMemoryBackend()
	server.Create(t, widgets, widget("a", "one"))
	persistWidgets(t, server, s, ResourceOptions{})
	config := server.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			query := r.URL.Query()
			switch {
			case query.Get("limit") == "1": // other types have changed
				return response(r,
					`{"apiVersion":"crdcache.test/v1","kind":"WidgetList","metadata":{"resourceVersion":"1000000"},"items":[]}`), nil
			case query.Get("timeoutSeconds") == "3":
				return response(r, ""), nil
			}
			return next.RoundTrip(r)
		})
	})
	f, err := New(Options{Config: config, Persistence: s})
	if err != nil {
		t.Fatal(err)
	}
	i := synced(t, f)
	if err := f.Shutdown(longContext(t)); err != nil {
		t.Fatal(err)
	}
	status, kept := i.Persistence(), s.only(t).at
	if status.Resumed || status.Err != nil || status.Checkpoint != kept || kept.Objects != 1 {
		t.Errorf("the status is %+v, the checkpoint %+v", status, kept)
	}
}

// roundTripper is a transport made of a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func response(r *http.Request, body string) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(body)),
	}
}
