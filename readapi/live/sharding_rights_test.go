package live

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/readapi"
)

// TestSharedListsOfSome: who may list what a selector selects, and nothing else, may list that of all parts. Rights are asked
// for by the selectors of a request, such as that to one name.
func TestSharedListsOfSome(t *testing.T) {
	for _, selector := range []string{"fieldSelector=metadata.name%3Dapi", "labelSelector=demo.crdcache.dev%2Fteam%3Dcheckout"} {
		wanted, err := url.ParseQuery(selector)
		if err != nil {
			t.Fatal(err)
		}
		s := shared(t, dynamicinformer.ShardByUID, 2, func(_ int, sharding *Sharding) {
			ask := sharding.Ask
			sharding.Ask = func(part int, r *http.Request) (*http.Response, error) {
				for name, values := range wanted {
					if r.URL.Query().Get(name) != values[0] {
						refused := httptest.NewRecorder()
						readapi.WriteError(refused, r, apierrors.NewForbidden(schema.GroupResource{Resource: "workloads"}, "", nil))
						return refused.Result(), nil
					}
				}
				return ask(part, r)
			}
		})
		for _, query := range []string{"", "&limit=1", "&resourceVersion=0"} {
			path := allWorkloads + "?" + selector + query
			want, got := ask(t, s.cluster, path), ask(t, s.servers[0], path)
			if diff := cmp.Diff(content(t, want.Body.String()), content(t, got.Body.String())); diff != "" {
				t.Errorf("%s (-cluster +server):\n%s", path, diff)
			}
		}
	}
}
