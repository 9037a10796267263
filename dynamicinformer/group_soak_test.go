package dynamicinformer

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// soakClusters is the duration of TestClustersJoinAndLeave after the first round of all clusters.
var soakClusters = flag.Duration("soak-clusters", time.Second, "the time during which clusters join and leave")

// usage has the resources of the process. The files are known on Linux only.
type usage struct{ goroutines, files, heapKB int }

func takeUsage() usage {
	files, _ := os.ReadDir("/proc/self/fd") // none on other systems
	return usage{runtime.NumGoroutine(), len(files), int(heap() >> 10)}
}

// TestClustersJoinAndLeave replaces 200 clusters of two types all the time. Each one gets a new kubeconfig
// and loses its server's connections meanwhile. Goroutines, files and memory must not grow.
func TestClustersJoinAndLeave(t *testing.T) {
	const clusters, workers, servers = 200, 4, 4
	var addresses []*httptest.Server
	for range servers {
		server := newServer(t)
		for n := range 20 {
			server.Create(t, widgets, widget("web", fmt.Sprint("w", n)))
			server.Create(t, gadgets, gadget("web", fmt.Sprint("g", n)))
		}
		other := httptest.NewServer(http.HandlerFunc(server.Server.Config.Handler.ServeHTTP))
		t.Cleanup(func() {
			other.CloseClientConnections()
			other.Close()
		})
		addresses = append(addresses, server.Server, other)
	}
	g, err := NewGroup(GroupOptions{MemoryBudget: 8 << 20})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background()) // a long run takes longer than longContext
	t.Cleanup(func() {
		must(t, g.Shutdown(ctx))
		cancel()
	})
	config := func(n int) *apitest.Server { return &apitest.Server{Server: addresses[n%len(addresses)]} }
	replace := func(n int) error {
		name := fmt.Sprint("cluster-", n)
		if g.Factory(name) != nil {
			if n%2 == 0 {
				if err := g.Update(name, config(n+1).Config()); err != nil {
					return err
				}
			}
			if err := g.Remove(ctx, name); err != nil {
				return err
			}
		}
		f, err := g.Add(name, Options{Config: config(n).Config(),
			Defaults: ResourceOptions{Storage: Storage{Mode: StorageAdaptive, Compression: runs{}}}})
		if err != nil {
			return err
		}
		for _, gvr := range []schema.GroupVersionResource{widgets, gadgets} {
			if _, err := f.ForResource(gvr); err != nil {
				return err
			}
		}
		if err := f.Start(ctx); err != nil {
			return err
		}
		return f.WaitForSync(ctx)
	}
	replaceAll := func() {
		var running sync.WaitGroup
		for first := range workers {
			running.Go(func() {
				for n := first; n < clusters; n += workers {
					if err := replace(n); err != nil {
						t.Errorf("replace cluster %d: %v", n, err)
						return
					}
				}
			})
		}
		running.Wait()
	}
	replaceAll()
	replaceAll()
	before, rounds := takeUsage(), 0
	for started := time.Now(); time.Since(started) < *soakClusters; rounds++ {
		replaceAll()
		if t.Failed() {
			return
		}
	}
	var after usage
	t.Cleanup(func() { t.Logf("%d rounds: %+v, before %+v", rounds, after, before) })
	await(t, func() bool { // connections end asynchronously
		after = takeUsage()
		return after.goroutines < before.goroutines*11/10 && after.files < before.files*11/10 &&
			after.heapKB < before.heapKB*11/10
	})
	if stats := g.MemoryStats(); len(g.Status()) != clusters || stats.Used == 0 {
		t.Errorf("%d clusters remain with %+v, want %d", len(g.Status()), stats, clusters)
	}
}
