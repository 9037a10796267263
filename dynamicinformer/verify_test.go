package dynamicinformer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// loseEvents drops the events of watches about objects named lost.
func loseEvents(w http.ResponseWriter, r *http.Request, next http.Handler) {
	next.ServeHTTP(&losingWriter{ResponseWriter: w}, r)
}

type losingWriter struct {
	http.ResponseWriter
	buffered []byte // an incomplete line
}

// Unwrap is for http.ResponseController.
func (w *losingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *losingWriter) Write(data []byte) (int, error) {
	w.buffered = append(w.buffered, data...)
	for {
		end := bytes.IndexByte(w.buffered, '\n')
		if end < 0 {
			return len(data), nil
		}
		line := w.buffered[:end+1]
		w.buffered = w.buffered[end+1:]
		if bytes.Contains(line, []byte(`"name":"lost"`)) {
			continue
		}
		if _, err := w.ResponseWriter.Write(line); err != nil {
			return 0, err
		}
	}
}

const verifyPeriod = time.Hour

// TestVerify verifies that a comparison finds added, changed and deleted objects whose events were lost, in
// all objects or a part of them. The informer relists, handlers receive the differences, and the results are
// counted.
func TestVerify(t *testing.T) {
	for name, options := range map[string]ResourceOptions{
		"all":        {},
		"namespaces": {Namespaces: InNamespaces("ns", "other")},
		"selector":   {LabelSelector: labels.SelectorFromSet(labels.Set{"team": "a"})},
		"any of":     {AnyOf: []Selector{{Label: labels.SelectorFromSet(labels.Set{"team": "a"})}}},
		"metadata":   {Storage: Storage{Mode: StorageMetadata}},
		"keep":       {Keep: Keep{Paths: []string{}}},
		"none":       {Storage: storageNone},
		"shard":      {},
	} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				for _, path := range []string{widgetsPath, "/apis/example.com/v1/namespaces/ns/widgets",
					"/apis/example.com/v1/namespaces/other/widgets"} {
					server.AddFaults(apitest.Fault{Path: path, Verb: "watch", Effect: loseEvents})
				}
				for n, name := range []string{"kept", "outside"} {
					u := widgetInQuarter(name, 3*n)
					u.SetLabels(map[string]string{"team": []string{"a", "b"}[n]})
					server.Create(t, widgets, u)
				}
				relisted := make(chan status.RelistReason, 10)
				options.Verify = verifyPeriod
				if name == "shard" {
					options.Shard = NewShard(sharding.ByUID)
					options.Shard.SetRanges(fourShards[:2]...)
				}
				f := newVirtualFactory(t, server, Options{Defaults: options, Listener: status.Listener{
					Relisted: func(_ status.Incarnation, reason status.RelistReason) { relisted <- reason }}})
				i := mustInformer(t, f, widgets)
				events := record(t, i)
				start(t, f)
				events.take()
				expect := func(want ...string) {
					t.Helper()
					if got := events.take(); len(got) > 0 {
						t.Errorf("events before the comparison: %v, want none", got)
					}
					time.Sleep(2 * verifyPeriod)
					synctest.Wait()
					got := slices.DeleteFunc(events.take(), // a relist also delivers unchanged objects
						func(e string) bool { return e == "update ns/kept" || e == "update ns/outside" })
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("events (-want +got):\n%s", diff)
					}
				}
				lost := widgetInQuarter("lost", 0)
				lost.SetLabels(map[string]string{"team": "a"})
				server.Create(t, widgets, lost)
				expect("add ns/lost")
				lost.SetAnnotations(map[string]string{"changed": "yes"})
				server.Update(t, widgets, lost)
				expect("update ns/lost")
				server.Delete(t, widgets, "ns", "lost")
				expect("gone ns/lost")
				v, relists := f.Metrics()[0].Verifications, i.Status().Relists
				if v.Diverged != 3 || v.Equal < 2 || v.Failed != 0 || relists.Diverged < 3 ||
					relists.Total() != relists.Diverged || <-relisted != status.RelistDiverged {
					t.Errorf("Verifications = %+v, Relists = %+v, want 3 diverged objects", v, relists)
				}
			})
		})
	}
}

// TestVerifyWhileObjectsChange verifies that changes during a comparison, a resource version that the server
// forgets between two pages, and failed requests cause no relist.
func TestVerifyWhileObjectsChange(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		for n := range 600 { // two pages
			server.Create(t, widgets, widget("ns", fmt.Sprint("w", n)))
		}
		server.Create(t, widgets, widgetInQuarter("w", 0))
		f := newVirtualFactory(t, server, Options{Defaults: ResourceOptions{Verify: verifyPeriod}})
		i := mustInformer(t, f, widgets)
		start(t, f)
		expired := 0
		server.AddFaults(apitest.Fault{Path: widgetsPath, Verb: "list",
			Effect: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				u := widgetInQuarter("w", 0)
				u.SetAnnotations(map[string]string{"n": time.Now().String()})
				server.Update(t, widgets, u)
				if r.URL.Query().Has("continue") && expired < 2 {
					expired++
					http.Error(w,
						`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`,
						http.StatusGone)
					return
				}
				next.ServeHTTP(w, r)
			}})
		time.Sleep(2 * verifyPeriod)
		synctest.Wait()
		if v := f.Metrics()[0].Verifications; v.Equal == 0 || v.Diverged+v.Failed != 0 || expired == 0 {
			t.Errorf("after %d expired pages: %+v, want only equal comparisons", expired, v)
		}
		server.Repair()
		server.AddFaults(fault(widgetsPath, "list", http.StatusForbidden))
		time.Sleep(2 * verifyPeriod)
		synctest.Wait()
		v, relists := f.Metrics()[0].Verifications, i.Status().Relists
		if v.Failed == 0 || v.Diverged != 0 || relists.Total() != 0 || i.Status().State != status.Synced {
			t.Errorf("Verifications = %+v, Relists = %+v, Status = %v; want failures without relists", v,
				relists, i.Status())
		}
	})
}

// TestVerifyLastingDifference verifies that a difference that remains after a list, such as an object that
// the server lists only in pages, causes one relist, and an object whose transform fails causes none.
func TestVerifyLastingDifference(t *testing.T) {
	for name, transform := range map[string]cache.TransformFunc{"hidden object": nil,
		"failing transform": func(obj any) (any, error) {
			if m, _ := meta.Accessor(obj); m.GetName() == "bad" && m.GetAnnotations()["n"] != "" {
				return nil, errors.New("it is bad")
			}
			return obj, nil
		}} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				for _, name := range []string{"good", "bad"} {
					server.Create(t, widgets, widget("ns", name))
				}
				relists := 0
				if transform == nil {
					relists = 1
					server.AddFaults(apitest.Fault{Path: widgetsPath, Verb: "watch-list",
						Effect: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
							query := r.URL.Query()
							query.Set("fieldSelector", "metadata.name!=bad")
							r.URL.RawQuery = query.Encode()
							next.ServeHTTP(w, r)
						}})
				}
				f := newVirtualFactory(t, server, Options{Defaults: ResourceOptions{Verify: verifyPeriod,
					Transform: transform}})
				i := mustInformer(t, f, widgets)
				start(t, f)
				for n := range 5 {
					if transform != nil {
						bad := widget("ns", "bad")
						bad.SetAnnotations(map[string]string{"n": fmt.Sprint(n)})
						server.Update(t, widgets, bad)
					}
					time.Sleep(2 * verifyPeriod)
					synctest.Wait()
				}
				if got := i.Status().Relists.Total(); got != relists {
					t.Errorf("%d relists, want %d: %+v", got, relists, f.Metrics()[0].Verifications)
				}
			})
		})
	}
}

// TestRelistWithoutStream verifies that Relist waits for the next incarnation while the type is not served,
// and requests a list from it.
func TestRelistWithoutStream(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		types := newRegistry("widgets")
		f := newVirtualFactory(t, server, Options{Types: types})
		i := mustInformer(t, f, widgets)
		start(t, f)
		types.set("widgets", func(t *typesource.Type) { t.Versions = nil })
		synctest.Wait()
		ended := make(chan error, 1)
		go func() { ended <- i.core.Relist(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatalf("Relist() = %v while the type is not served, want it to wait", err)
		default:
		}
		before := len(server.Requests())
		types.set("widgets", nil)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if len(server.Requests()) == before || !i.HasSynced() {
			t.Errorf("Relist() returned without a request, HasSynced() = %t", i.HasSynced())
		}
	})
}

// TestRelist verifies that Relist returns when the cache has the result of a list that began after the call.
func TestRelist(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.AddFaults(apitest.Fault{Path: widgetsPath, Verb: "watch", Effect: loseEvents})
		f := newVirtualFactory(t, server, Options{})
		i := mustInformer(t, f, widgets)
		start(t, f)
		for _, name := range []string{"lost", "found"} {
			server.Create(t, widgets, widget("ns", name))
		}
		must(t, i.Relist(t.Context()))
		if n := i.Snapshot().Len(); n != 2 {
			t.Errorf("%d objects after Relist, want 2", n)
		}
		if r := i.Status().Relists; r != (status.Relists{Requested: 1}) {
			t.Errorf("relists = %+v, want one requested", r)
		}
		server.AddFaults(fault(widgetsPath, "watch-list", http.StatusForbidden),
			fault(widgetsPath, "list", http.StatusForbidden))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := i.Relist(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Relist() = %v, want DeadlineExceeded", err)
		}
		server.Repair()
		if err := i.Relist(t.Context()); err != nil {
			t.Error(err)
		}
		got, err := server.Client(t).Resource(widgets).List(t.Context(), metav1.ListOptions{})
		if err != nil || i.Snapshot().ResourceVersion() != got.GetResourceVersion() {
			t.Errorf("Relist() = %v with version %s, want %s", err, i.Snapshot().ResourceVersion(),
				got.GetResourceVersion())
		}
	})
}
