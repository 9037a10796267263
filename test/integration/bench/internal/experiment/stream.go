package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// watchStream reads a watch-list and discards it: the minimal work of any cache. It finds the ends of events
// to count the objects and to detect the end of the initial events.
type watchStream struct {
	client   *http.Client
	url      string
	onObject func(key string) // nil without a handler
	objects  atomic.Int64
}

func newStream(o Options) (Cache, error) {
	client, err := rest.HTTPClientFor(o.Config)
	if err != nil {
		return nil, err
	}
	s := &watchStream{client: client, url: strings.TrimSuffix(o.Config.Host, "/") + pathOf(o.GVR) +
		"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"}
	if o.Handler != NoHandler {
		s.onObject = o.OnSeen
	}
	return s, nil
}

func pathOf(gvr schema.GroupVersionResource) string {
	if gvr.Group == "" {
		return path.Join("/api", gvr.Version, gvr.Resource)
	}
	return path.Join("/apis", gvr.Group, gvr.Version, gvr.Resource)
}

func (s *watchStream) Sync(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
		return fmt.Errorf("watching: %s: %s", response.Status, text)
	}
	synced := make(chan struct{})
	ended := make(chan error, 1)
	go func() { // ends with ctx, which closes the body
		defer response.Body.Close()
		ended <- s.follow(response.Body, synced)
	}()
	select {
	case <-synced:
		return nil
	case err := <-ended:
		return fmt.Errorf("%w: the stream ended: %w", errNotSynced, err)
	}
}

func (s *watchStream) Len() int { return int(s.objects.Load()) }

// Markers of events in the API server's encoding.
var (
	bookmark   = []byte(`{"type":"BOOKMARK"`)
	initialEnd = []byte("k8s.io/initial-events-end")
)

// follow reads the stream to its end and closes synced after the initial events.
func (s *watchStream) follow(body io.Reader, synced chan<- struct{}) error {
	buffer := make([]byte, 64<<10)
	unfinished := 0 // length of the unfinished event at the start of the buffer
	initial := true
	for {
		n, err := body.Read(buffer[unfinished:])
		rest := buffer[:unfinished+n]
		for searched := unfinished; ; searched = 0 { // the held part contains no newline
			end := bytes.IndexByte(rest[searched:], '\n')
			if end < 0 {
				break
			}
			end += searched
			switch line := rest[:end]; {
			case !bytes.HasPrefix(line, bookmark):
				s.handleEvent(line, initial)
			case initial && bytes.Contains(line, initialEnd):
				initial = false
				close(synced)
			}
			rest = rest[end+1:]
		}
		if len(rest) < unfinished+n {
			copy(buffer, rest)
		}
		unfinished = len(rest)
		if unfinished == len(buffer) {
			buffer = append(buffer, make([]byte, len(buffer))...)
		}
		if err != nil {
			return errors.Join(err, context.Canceled)
		}
	}
}

func (s *watchStream) handleEvent(line []byte, initial bool) {
	if initial {
		s.objects.Add(1)
	}
	if s.onObject != nil {
		s.onObject(keyOf(line))
	}
}

// keyOf extracts the key from an event. The object must begin with its metadata, like the benchmark's custom
// resources.
func keyOf(event []byte) string {
	return stringField(event, `,"namespace":"`) + "/" + stringField(event, `,"name":"`)
}

func stringField(event []byte, field string) string {
	_, after, _ := bytes.Cut(event, []byte(field))
	value, _, _ := bytes.Cut(after, []byte{'"'})
	return string(value)
}
