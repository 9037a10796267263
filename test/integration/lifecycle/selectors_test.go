package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/test/integration/harness"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// apply creates widgets, or changes their labels; without labels it deletes them.
func (s *fixture) apply(definition *unstructured.Unstructured, widgets map[string]labels.Set) {
	for name, pairs := range widgets {
		widget := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"n": rand.Int64()}}}
		widget.SetGroupVersionKind(resourceOf(definition).GroupVersion().WithKind("Widget"))
		widget.SetName(name)
		widget.SetLabels(pairs)
		_, err := s.objects(definition).Apply(s.ctx, name, widget, metav1.ApplyOptions{FieldManager: "t"})
		if err == nil && pairs == nil {
			err = s.objects(definition).Delete(s.ctx, name, metav1.DeleteOptions{})
		}
		if err != nil {
			s.Error(err)
		}
	}
}

// TestSelectorsOnServer changes objects before and after the server answers the list of an added selector.
// Only the new part is listed, and each change is delivered once. Then goroutines change all selectors.
func TestSelectorsOnServer(t *testing.T) {
	a, b := labels.Set{"team": "a"}, labels.Set{"team": "b"}
	red, aRed := labels.Set{"team": "b", "red": ""}, labels.Set{"team": "a", "red": ""}
	var selectors [4]dynamicinformer.Selector
	for k, text := range []string{"team=a", "red,team in (a,b)", "team in (b,c)", "!red"} {
		selectors[k].Label, _ = labels.Parse(text)
	}
	for _, afterList := range []bool{false, true} {
		t.Run(fmt.Sprint(afterList), func(t *testing.T) {
			t.Parallel()
			set, config := dynamicinformer.NewSelectors(selectors[0]), harness.Config(t)
			var recorder atomic.Pointer[func(line string, answered bool)]
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					line := fmt.Sprintf("watch=%s %s", r.URL.Query().Get("watch"), r.URL.Query().Get("labelSelector"))
					if record := recorder.Load(); record != nil {
						(*record)(line, false)
						defer (*record)(line, true)
					}
					return next.RoundTrip(r)
				})
			})
			s := newFixture(t, dynamicinformer.Options{Config: config,
				Defaults: dynamicinformer.ResourceOptions{Selectors: set}}, nil)
			widgets := harness.NewCRD(harness.Group(t), "Widget")
			harness.InstallCRDs(t, widgets)
			s.apply(widgets, map[string]labels.Set{"only": a, "both": aRed, "moved": a, "left": a, "kept": red,
				"updated": red, "deleted": red, "other": b, "reddened": b})
			i, j := s.startInformer(resourceOf(widgets))
			j.expect("add both", "add left", "add moved", "add only")
			s.apply(widgets, map[string]labels.Set{"watched": a})
			j.expect("add watched")

			list, requests := "watch= red,team in (a,b)", make(chan string, 100)
			recorder.Store(new(func(line string, answered bool) {
				if !answered {
					requests <- line
				}
				if line == list && answered == afterList {
					s.apply(widgets, map[string]labels.Set{"only": a, "moved": red, "left": b, "updated": red,
						"deleted": nil, "created": red, "reddened": red})
				}
			}))
			add := func(k int) {
				if err := errors.Join(set.Add(selectors[k]), i.WaitForSelectors(s.ctx)); err != nil {
					t.Error(err)
				}
			}
			add(1)
			want := []string{"add created", "add kept", "add reddened", "add updated", "delete left", "update moved",
				"update only"}
			if afterList {
				want = append(want, "add deleted", "delete deleted", "update updated")
			}
			j.expect(want...)
			set.Remove(selectors[0])
			j.expect("delete only", "delete watched")
			s.apply(widgets, map[string]labels.Set{"only": a})
			s.apply(widgets, map[string]labels.Set{"both": aRed})
			j.expect("update both")
			recorder.Store(nil)
			var got []string
			for len(requests) > 0 {
				got = append(got, <-requests)
			}
			if diff := cmp.Diff([]string{list, "watch=true team in (a,b)"}, got); diff != "" {
				t.Errorf("requests of Add and Remove (-want +got):\n%s", diff)
			}

			var changes sync.WaitGroup
			for k := range selectors {
				changes.Go(func() {
					for range 20 {
						set.Remove(selectors[k])
						add(k)
					}
				})
			}
			for n := range 200 {
				next := []labels.Set{a, b, red, aRed, {"team": "c"}, {}, nil}[n%7]
				s.apply(widgets, map[string]labels.Set{fmt.Sprint("w", rand.IntN(9)): next})
			}
			changes.Wait()
			set.Remove(selectors[3]) // each object with a team a, b or c remains
			harness.Eventually(t, func(context.Context) error {
				cached := map[string]string{}
				for _, obj := range i.GetStore().List() {
					cached[obj.(metav1.Object).GetName()] = obj.(metav1.Object).GetResourceVersion()
				}
				j.mu.Lock()
				defer j.mu.Unlock()
				if diff := cmp.Diff(cached, j.mu.versions); diff != "" {
					return fmt.Errorf("versions in the cache, and of events (-want +got):\n%s", diff)
				}
				return s.checkAgreement(i, "team in (a,b,c)")
			})
		})
	}
}
