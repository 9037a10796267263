package conformance_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/integration/harness"
)

// config returns a configuration for the suite. Bookmarks that the server sends when it sees fit are left out,
// because a scenario that sends its own tells what was known before it; those that end a watch-list stay.
func config(t *testing.T) *rest.Config {
	t.Helper()
	c := harness.Config(t)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return quiet{next} })
	return c
}

type quiet struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (q quiet) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := q.next.RoundTrip(r)
	if err == nil && r.URL.Query().Has("watch") && response.StatusCode == http.StatusOK {
		response.Body = &events{Closer: response.Body, source: bufio.NewReader(response.Body)}
	}
	return response, err
}

// events is the body of a watch, in which each line is an event.
type events struct {
	io.Closer
	source *bufio.Reader
	rest   []byte // of the line that is being read
}

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		line, err := e.source.ReadBytes('\n')
		if !isPeriodicBookmark(line) {
			e.rest = line
		}
		if err != nil && len(e.rest) == 0 {
			return 0, err
		}
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func isPeriodicBookmark(line []byte) bool {
	return bytes.HasPrefix(line, []byte(`{"type":"BOOKMARK"`)) && !bytes.Contains(line, []byte(`"k8s.io/initial-events-end":"true"`))
}

func TestEventsLeaveOutPeriodicBookmarks(t *testing.T) {
	const (
		periodic = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}` + "\n"
		ending   = `{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
		added    = `{"type":"ADDED","object":{"metadata":{"name":"BOOKMARK"}}}` + "\n"
	)
	body := io.NopCloser(strings.NewReader(added + periodic + ending + periodic + periodic + added + "cut off"))
	got, err := io.ReadAll(&events{Closer: body, source: bufio.NewReader(body)})
	if want := added + ending + added + "cut off"; err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}
