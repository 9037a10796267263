package shardview_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// openWatches counts the open watches of a client. The factory's watch of a CRD does not count.
type openWatches struct{ atomic.Int64 }

func (o *openWatches) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && response.StatusCode == http.StatusOK && r.URL.Query().Get("watch") == "true" &&
			path.Base(r.URL.Path) != "customresourcedefinitions" {
			o.Add(1)
			response.Body = &openWatch{ReadCloser: response.Body,
				onClose: sync.OnceFunc(func() { o.Add(-1) })}
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type openWatch struct {
	io.ReadCloser
	onClose func()
}

func (w *openWatch) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil {
		w.onClose()
	}
	return n, err
}

func (w *openWatch) Close() error {
	w.onClose()
	return w.ReadCloser.Close()
}

// eventChecker checks the events of a handler: no object is added twice, and no version decreases.
type eventChecker struct {
	*testing.T
	versions map[types.UID]int // handlers are called one at a time
}

func (l *eventChecker) version(obj any) (types.UID, int) {
	o := obj.(metav1.Object)
	version, err := strconv.Atoi(o.GetResourceVersion())
	if err != nil {
		l.Error(err)
	}
	return o.GetUID(), version
}

func (l *eventChecker) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			uid, version := l.version(obj)
			if known, twice := l.versions[uid]; twice {
				l.Errorf("%s was added at version %d and at %d", uid, known, version)
			}
			l.versions[uid] = version
		},
		UpdateFunc: func(_, obj any) {
			uid, version := l.version(obj)
			if known, added := l.versions[uid]; !added || version < known {
				l.Errorf("%s was updated to version %d after %d", uid, version, known)
			}
			l.versions[uid] = version
		},
		DeleteFunc: func(obj any) { l.Errorf("deleted: %v", obj) },
	}
}

// TestRangesComeOneByOne adds ranges repeatedly. In the end, each type has one watch, and no event was lost
// or repeated.
func TestRangesComeOneByOne(t *testing.T) {
	s := newFixture(t)
	for name, host := range map[string]string{"with": s.filteringServer, "without": s.plainServer} {
		t.Run(name+" the feature", func(t *testing.T) {
			s := *s
			s.T = t
			var open openWatches
			config := harness.Config(t)
			config.Host, config.QPS = "https://"+host, -1
			config.Wrap(open.wrap)
			r := s.newReplicaFrom(config)
			for _, i := range r.informers {
				if _, err := i.AddEventHandler((&eventChecker{t, map[types.UID]int{}}).
					handler()); err != nil {
					t.Fatal(err)
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			var updating sync.WaitGroup
			updating.Go(func() { s.update(ctx, name) }) // ended by stop
			defer updating.Wait()
			defer stop()
			ranges := sharding.Split(12)
			for k := range ranges {
				r.shard.SetRanges(ranges[:k+1]...)
				for _, i := range r.informers {
					if err := i.WaitForShard(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			stop()
			updating.Wait()
			r.awaitAgreement("all ranges have come")
			harness.Eventually(t, func(context.Context) error {
				if n := open.Load(); n != int64(len(r.informers)) {
					return fmt.Errorf("%d watches are open for %d types", n, len(r.informers))
				}
				return nil
			})
			for _, i := range r.informers {
				if err := i.Flush(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// update changes the objects one after the other until ctx ends.
func (s *fixture) update(ctx context.Context, value string) {
	for n := 0; ctx.Err() == nil; n++ {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%s-%d"}}}`, value, n)
		for _, gvr := range []schema.GroupVersionResource{configMaps, s.customResources} {
			_, err := s.admin.Resource(gvr).Namespace(s.namespace).Patch(context.WithoutCancel(ctx),
				fmt.Sprint("x", n%objectCount), types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil {
				s.Error(err)
				return
			}
		}
	}
}
