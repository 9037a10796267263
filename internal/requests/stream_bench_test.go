package requests

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/packed"
)

// BenchmarkInitialEvents passes on the initial events of a watch to a reader: handed over one by one, as client-go does,
// and fed, in batches of as many as come with one read.
func BenchmarkInitialEvents(b *testing.B) {
	const together = 16
	batch := small(together)
	sources := map[string]func(n int) watch.Interface{
		"one by one": func(n int) watch.Interface {
			source := watch.NewFake() // which has no buffer
			go func() {               // ended by the last event
				for range n {
					for _, event := range batch {
						source.Action(event.Type, event.Object)
					}
				}
				source.Stop()
			}()
			return source
		},
		"fed": func(n int) watch.Interface {
			return &feeding{fedFake: newFedFake(), feed: func(take func([]watch.Event) bool) {
				for range n {
					take(batch)
				}
			}}
		},
	}
	for name, open := range sources {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			read := 0
			for range NewStream(open(b.N), Hooks{Initial: true}).ResultChan() {
				read++
			}
			if read < together {
				b.Fatalf("got %d events", read)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(read), "ns/event")
		})
	}
}

// feeding is a source that feeds as soon as it is told where to, and then ends.
type feeding struct {
	*fedFake
	feed func(take func([]watch.Event) bool)
}

func (f *feeding) Deliver(take func([]watch.Event) bool) {
	go func() { // ended by the last event
		f.feed(take)
		f.Stop()
	}()
}

// BenchmarkWatchList reads 5,000 initial events of 1.5 KB from a server on the same machine, as a reflector does that does
// some work for each.
func BenchmarkWatchList(b *testing.B) {
	const objects = 5000
	var body bytes.Buffer
	for i := range objects {
		fmt.Fprintf(&body, `{"type":"ADDED","object":{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g%d","namespace":"default","resourceVersion":"%d"},"spec":{"text":%q}}}`+"\n",
			i, i+1, strings.Repeat("x", 1400))
	}
	body.WriteString(`{"type":"BOOKMARK","object":{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"resourceVersion":"9999","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(body.Bytes())
	}))
	defer server.Close()
	own, err := NewClient(&rest.Config{Host: server.URL, QPS: -1}, nil)
	if err != nil {
		b.Fatal(err)
	}
	r, err := newResource(own, gadgets, "", packedForm, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		w, err := r.Watch(b.Context(), metav1.ListOptions{})
		if err != nil {
			b.Fatal(err)
		}
		read := 0
		for event := range NewStream(w, Hooks{Initial: true}).ResultChan() {
			if o, ok := event.Object.(*packed.Object); ok {
				o.GetLabels()
			}
			read++
		}
		if read != objects+1 {
			b.Fatalf("got %d events", read)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*objects), "ns/event")
}
