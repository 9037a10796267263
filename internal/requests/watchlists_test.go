package requests

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// slowEvents is a proxy that sends one event of a watch after each pause, the last one forever.
type slowEvents struct {
	pause time.Duration
	kinds []string // ADDED, MODIFIED, BOOKMARK, or END for the bookmark that ends the initial events
}

func (s slowEvents) RoundTrip(r *http.Request) (*http.Response, error) {
	body, events := io.Pipe()
	go func() { // ended by the end of the request
		for n := 0; ; n++ {
			kind, object := s.kinds[min(n, len(s.kinds)-1)], jsonGadget
			if kind == "END" {
				kind, object = "BOOKMARK", `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}`
			}
			if _, err := io.WriteString(events, `{"type":"`+kind+`","object":`+object+"}\n"); err != nil {
				return
			}
			select {
			case <-time.After(s.pause):
			case <-r.Context().Done():
				events.CloseWithError(r.Context().Err())
				return
			}
		}
	}()
	return &http.Response{StatusCode: http.StatusOK,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r}, nil
}

// TestProgressOfWatchLists verifies that a watch-list ends with an error, without its slot, if its events are
// no progress of the initial list, whatever the pauses; and that a slow one with progress is completed.
func TestProgressOfWatchLists(t *testing.T) {
	many := slices.Repeat([]string{"ADDED"}, 10000)
	for name, test := range map[string]struct {
		slowEvents
		stalled time.Duration // at the latest; zero if the initial list is completed
	}{
		"additions without an end": {slowEvents{time.Second, []string{"ADDED"}}, 12 * time.Second},
		"modifications":            {slowEvents{time.Second, []string{"ADDED", "MODIFIED"}}, 8 * time.Second},
		"bookmarks":                {slowEvents{time.Second, []string{"ADDED", "BOOKMARK"}}, 8 * time.Second},
		"silence after a bookmark": {slowEvents{time.Hour, []string{"BOOKMARK"}}, 6 * time.Second},
		"many objects, slowly":     {slowEvents{9 * time.Millisecond, append(many, "END")}, 0},
		"modifications at the end": {slowEvents{time.Millisecond, append(many, "MODIFIED", "END")}, 0},
		"pauses":                   {slowEvents{3 * time.Second, []string{"ADDED", "ADDED", "END"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newInlineListWatch(t, &rest.Config{Host: "http://server.test", QPS: -1},
					&http.Client{Transport: test.slowEvents}, packedObjects)
				initial, begun, stalled := true, time.Now(), time.Duration(0)
				err := w.WatchInline(t.Context(),
					&metav1.ListOptions{SendInitialEvents: &initial},
					func(event watch.Event) bool {
						if event.Type == watch.Error {
							stalled = time.Since(begun)
						}
						return !endsInitialEvents(event)
					})
				if err != nil || stalled > test.stalled || (stalled > 0) != (test.stalled > 0) {
					t.Errorf("WatchInline() = %v, stalled after %v, want %v", err, stalled, test.stalled)
				}
				if held, _, _ := w.limiter.Load(); held != 0 {
					t.Errorf("%d slots are held, want none", held)
				}
			})
		})
	}
}

// TestClientsShareConnections verifies that the clients of one connection, and only these, share what they
// have learned about watches.
func TestClientsShareConnections(t *testing.T) {
	shared, err := NewConnection(&rest.Config{Host: "https://a.test"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	clients := map[*watchRecord]int{}
	for _, config := range []*rest.Config{{Host: "https://a.test"}, {Host: "https://a.test"},
		{Host: "https://b.test"}, shared.Config(), shared.Config()} {
		client, err := NewClient(config, nil)
		if err != nil {
			t.Fatal(err)
		}
		clients[client.watches]++
	}
	if len(clients) != 3 || clients[&shared.watches] != 2 {
		t.Errorf("the numbers of clients by record are %v, want 2, 1 and 2", clients)
	}
}
