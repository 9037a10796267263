package dynamicinformer

import (
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/test/testcluster"
)

// soakClusters is the duration of TestClustersJoinAndLeave after the first round of all clusters.
var soakClusters = flag.Duration("soak-clusters", time.Second, "the time during which clusters join and leave")

// resourceUsage has the resources of the process. The files are known on Linux only.
type resourceUsage struct{ goroutines, files, heapKB int }

func measureUsage() resourceUsage {
	files, _ := os.ReadDir("/proc/self/fd") // none on other systems
	return resourceUsage{runtime.NumGoroutine(), len(files), int(heap() >> 10)}
}

// TestClustersJoinAndLeave replaces 200 clusters of two types all the time. Every other one gets a new
// kubeconfig before it leaves. Goroutines, files and memory must not grow.
func TestClustersJoinAndLeave(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const clusters, workers, servers = 200, 4, 4
	var addresses []string // two for each server
	for range servers {
		// apitest's server would record the requests.
		server, err := testcluster.New(t.Context(), testcluster.Options{})
		must(t, err)
		for n := range 20 {
			for _, kind := range []string{"ConfigMap", "Secret"} {
				o := widget("default", fmt.Sprint("c", n))
				o.SetAPIVersion("v1")
				o.SetKind(kind)
				must(t, server.Load(t.Context(), o))
			}
		}
		for range 2 {
			front := httptest.NewServer(server)
			t.Cleanup(func() {
				front.CloseClientConnections()
				front.Close()
			})
			addresses = append(addresses, front.URL)
		}
	}
	g, err := NewGroup(GroupOptions{MemoryBudget: 8 << 20})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background()) // a long run takes longer than longContext
	t.Cleanup(func() {
		must(t, g.Shutdown(ctx))
		cancel()
	})
	config := func(n int) *rest.Config {
		return &rest.Config{Host: addresses[n%len(addresses)], QPS: -1}
	}
	types := []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"},
		{Version: "v1", Resource: "secrets"}}
	replace := func(n int) error {
		name := fmt.Sprint("cluster-", n)
		if g.Factory(name) != nil {
			if n%2 == 0 {
				if err := g.Update(name, config(n+1)); err != nil {
					return err
				}
			}
			if err := g.Remove(ctx, name); err != nil {
				return err
			}
		}
		f, err := g.Add(name, Options{Config: config(n),
			Defaults: ResourceOptions{Storage: Storage{Mode: StorageAdaptive,
				Compression: plainCompression{}}}})
		if err != nil {
			return err
		}
		for _, gvr := range types {
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
	before, rounds := measureUsage(), 0
	for started := time.Now(); time.Since(started) < *soakClusters; rounds++ {
		replaceAll()
		if t.Failed() {
			return
		}
	}
	var after resourceUsage
	t.Cleanup(func() { t.Logf("%d rounds: %+v, before %+v", rounds, after, before) })
	await(t, func() bool { // connections end asynchronously
		after = measureUsage()
		return after.goroutines < before.goroutines*11/10 && after.files < before.files*11/10 &&
			after.heapKB < before.heapKB*11/10
	})
	if stats := g.MemoryStats(); len(g.Status()) != clusters || stats.Used == 0 {
		t.Errorf("%d clusters remain with %+v, want %d", len(g.Status()), stats, clusters)
	}
}
