package dynamicinformer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
)

// TestKeepWholeWithOtherOptions verifies that after a list in any form, random changes and a relist, exactly
// the objects that match are whole, together with options that have their own way to request, filter,
// compress or check objects.
func TestKeepWholeWithOtherOptions(t *testing.T) {
	inTeams, err := labels.Parse("team in (a,b)")
	must(t, err)
	for name, o := range map[string]ResourceOptions{
		"list and watch":   {WatchBookmarks: new(bool)},
		"pages":            {WatchBookmarks: new(bool), PageSize: 3},
		"alternatives":     {AnyOf: []Selector{{Label: inTeams}}},
		"namespace":        {Namespaces: InNamespaces("web")},
		"verified":         {Verify: time.Millisecond},
		"compressed lists": {Storage: adaptive},
		"shard":            {Shard: NewShard(sharding.ByUID, sharding.Split(1)...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, random := newServer(t), rand.New(rand.NewPCG(1, 2))
			changed := func(n int) *unstructured.Unstructured {
				u := widgetWithColor("web", fmt.Sprint("w", n), []string{"red", "blue"}[random.IntN(2)])
				u.SetLabels(map[string]string{"team": []string{"a", "b"}[random.IntN(2)]})
				return u
			}
			for n := range 20 {
				server.Create(t, widgets, changed(n))
			}
			o.Keep = keepRed
			if o.Storage.Mode == StorageAdaptive {
				o.Storage.CompressLists = true
			}
			i := started(t, Options{Config: server.Config(), MemoryBudget: 1}, o)
			check := func(step string) {
				t.Helper()
				must(t, i.Compress(longContext(t)))
				list, err := server.Client(t).Resource(widgets).List(t.Context(), metav1.ListOptions{})
				must(t, err)
				must(t, i.WaitForVersion(longContext(t), list.GetResourceVersion()))
				if i.Snapshot().Len() != len(list.Items) {
					t.Fatalf("%s: %d objects, want %d", step, i.Snapshot().Len(), len(list.Items))
				}
				for _, u := range list.Items {
					want := u.GetLabels()["team"] == "a" && u.Object["spec"].(map[string]any)["color"] == "red"
					stored, _ := i.Snapshot().Stored("web/" + u.GetName())
					if i.IsWhole(stored) != want {
						t.Errorf("%s: %s is whole: %v, want %v", step, u.GetName(), !want, want)
					}
					got, err := i.Lister().ByNamespace("web").Get(u.GetName())
					must(t, err)
					storedForm(t, i, got)
				}
			}
			check("list")
			for n := range 60 {
				server.Update(t, widgets, changed(n%20))
			}
			check("events")
			must(t, i.Relist(longContext(t)))
			check("relist")
		})
	}
}
