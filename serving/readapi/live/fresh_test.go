package live

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdcache/crdcache/test/testcluster"
)

// TestQuietTypesAreFresh verifies that an up-to-date list of a quiet type waits for no bookmark, up to
// 5,000 objects, and that all lists of larger types wait for the same one.
func TestQuietTypesAreFresh(t *testing.T) {
	for _, tt := range []struct{ objects, bookmarks int }{{10, 0}, {600, 0}, {5001, 1}} {
		t.Run(fmt.Sprint(tt.objects), func(t *testing.T) {
			var bookmarks func() int
			s := newFixture(t, Options{}, func(cluster *testcluster.Cluster) {
				var objects []runtime.Object
				for i := range tt.objects {
					objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
						"apiVersion": demoGroup + "/v1", "kind": "Environment",
						"metadata": map[string]any{"name": fmt.Sprint("quiet-", i)}}})
				}
				if err := cluster.Load(t.Context(), objects...); err != nil {
					t.Fatal(err)
				}
				bookmarks = answerGapChecks(cluster, nil)
			})
			s.changeOtherType("other")
			var lists sync.WaitGroup
			for range 4 {
				lists.Go(func() { // ends with the response
					list := get(t, s.server, environmentsPath)
					n := strings.Count(list.Body.String(), `"quiet-`)
					if list.Code != http.StatusOK || n != tt.objects {
						t.Errorf("list = %d with %d objects, want all %d", list.Code, n, tt.objects)
					}
				})
			}
			lists.Wait()
			if got := bookmarks(); got != tt.bookmarks {
				t.Errorf("%d watches waited for a bookmark, want %d", got, tt.bookmarks)
			}
		})
	}
}
