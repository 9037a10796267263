package disk

import (
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/readapi/testcluster"
)

// BenchmarkRestart measures the CPU time until the sync of an informer that resumes without changes, and of
// one that lists. It includes the small cost of the server.
func BenchmarkRestart(b *testing.B) {
	const objects = 50_000
	cluster, err := testcluster.New(b.Context(), testcluster.Options{})
	if err != nil {
		b.Fatal(err)
	}
	folder := b.TempDir()
	run := func(b *testing.B, folder string, resumes bool) time.Duration {
		b.Helper()
		feed := newFeed(objects)
		config := cluster.Config()
		config.Wrap(func(others http.RoundTripper) http.RoundTripper { return feedTransport{feed, others} })
		runtime.GC()
		before := processTime(b)
		options := dynamicinformer.Options{Config: config}
		var kept *Store
		if folder != "" {
			kept = New(folder, Options{})
			options.Persistence = kept
		}
		factory, err := dynamicinformer.New(options)
		if err != nil {
			b.Fatal(err)
		}
		informer, err := factory.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps"))
		if err != nil {
			b.Fatal(err)
		}
		if err := factory.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := factory.WaitForSync(b.Context()); err != nil {
			b.Fatal(err)
		}
		after := processTime(b)
		if n := informer.Snapshot().Len(); n != objects || informer.Persistence().Resumed != resumes {
			b.Errorf("%d objects, %+v", n, informer.Persistence())
		}
		if err := factory.Shutdown(b.Context()); err != nil {
			b.Error(err)
		}
		if kept != nil {
			if err := kept.Close(); err != nil {
				b.Error(err)
			}
		}
		return after - before
	}
	run(b, folder, false)
	for name, from := range map[string]string{"cold": "", "resumed": folder} {
		b.Run(name, func(b *testing.B) {
			var all []time.Duration
			for b.Loop() {
				all = append(all, run(b, from, from != ""))
			}
			slices.Sort(all)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(all[len(all)/2].Microseconds())/1e3, "cpu-ms")
			b.ReportMetric(float64(all[0].Microseconds())/1e3, "cpu-ms-min")
		})
	}
}
