package apiserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/readapi"
)

// countingWriter is a client that reads everything and keeps nothing but how much it was.
type countingWriter struct {
	header http.Header
	size   int64
}

func (d *countingWriter) Header() http.Header { return d.header }
func (d *countingWriter) WriteHeader(int)     {}
func (d *countingWriter) Flush()              {}
func (d *countingWriter) Write(data []byte) (int, error) {
	d.size += int64(len(data))
	return len(data), nil
}

// BenchmarkRead reads 10,000 objects of 2 KB in the ways that clients do.
func BenchmarkRead(b *testing.B) {
	s := NewStorage(StorageOptions{})
	apply(b, s, testkit.WidgetCRD)
	for i := range 10000 {
		data := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w%d","namespace":"ns%d","labels":{"color":"c%d"}},"spec":{"color":"c%d","text":%q}}`,
			i, i%50, i%10, i%10, strings.Repeat("x", 1900))
		if _, err := s.ApplyJSON([]byte(data)); err != nil {
			b.Fatal(err)
		}
	}
	h := readapi.NewHandler(s, readapi.HandlerOptions{WatchTimeout: 1})
	for name, request := range map[string][2]string{
		"list": {"", mediaJSON}, "label": {"labelSelector=color%3Dc1",
			mediaJSON}, "field": {"fieldSelector=spec.color%3Dc1", mediaJSON},
		"page": {"limit=500", mediaJSON}, "table": {"limit=500", asTable}, "metadata": {"limit=500",
			asPartialList}, "other version": {"beta", mediaJSON},
		"watch-list": {
			"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
			mediaJSON},
	} {
		b.Run(name, func(b *testing.B) {
			path := widgetsPath + "?" + request[0]
			if request[0] == "beta" {
				path = strings.Replace(widgetsPath, "v1", "v1beta1", 1)
			}
			b.ReportAllocs()
			for b.Loop() {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, path, nil)
				if err != nil {
					b.Fatal(err)
				}
				r.Header.Set("Accept", request[1])
				d := &countingWriter{header: http.Header{}}
				h.ServeHTTP(d, r)
				b.SetBytes(d.size)
			}
		})
	}
}
