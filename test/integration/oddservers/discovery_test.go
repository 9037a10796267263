package oddservers_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestPlainDiscovery checks that a tracker finds the same types on a server without aggregated discovery, and
// follows a new type.
func TestPlainDiscovery(t *testing.T) {
	startTracker := func(config *rest.Config) (*discovery.Tracker, []string) {
		tracker := harness.RunTracker(t, config)
		if err := tracker.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		return tracker, typeNames(tracker)
	}
	_, want := startTracker(harness.Config(t))
	plain, got := startTracker(harness.ConfigThroughProxy(t, hideAggregated))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-aggregated +plain):\n%s", diff)
	}
	group := harness.Group(t)
	harness.InstallCRDs(t, harness.NewCRD(group, "Boat"))
	harness.Eventually(t, func(context.Context) error {
		if _, known := plain.Snapshot().Lookup(schema.GroupResource{Group: group,
			Resource: "boats"}); !known {
			return errors.New("the type is not known")
		}
		return nil
	})
}

// typeNames returns the names of the types that a tracker knows.
func typeNames(tracker *discovery.Tracker) []string {
	var all []string
	for _, known := range tracker.Snapshot().Types() {
		all = append(all, known.GroupResource.String()+" "+strings.Join(known.ServedVersions(), ","))
	}
	slices.Sort(all)
	return all
}

// hideAggregated wraps an API server and hides its aggregated discovery.
func hideAggregated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "apidiscovery") {
			r = r.Clone(r.Context())
			r.Header.Set("Accept", "application/json")
		}
		next.ServeHTTP(w, r)
	})
}
