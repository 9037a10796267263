package follow

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
)

// TestClaimOf: a name is for one version where it says so, and not where a group begins like it.
func TestClaimOf(t *testing.T) {
	for name, tt := range map[string]struct {
		gvr  schema.GroupVersionResource
		want string
	}{
		"widgets":                {widgets, ""},
		"widgets.example.com":    {widgets, ""},
		"widgets.v1":             {widgets, "v1"},
		"widgets.v1.example.com": {widgets, "v1"},
		"*.v1.example.com":       {widgets, "v1"},
		"*":                      {widgets, ""},
		"widgets.v1.x.com":       {schema.GroupVersionResource{Group: "v1.x.com", Version: "v1", Resource: "widgets"}, ""},
		"widgets.v2.x.com":       {schema.GroupVersionResource{Group: "v2.x.com", Version: "v1", Resource: "widgets"}, ""},
		"pods.v1.":               {schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "v1"},
	} {
		n, err := discovery.ParseName(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := claimOf(n, tt.gvr); got != (claim{tt.gvr.GroupResource(), tt.want}) {
			t.Errorf("%s claims %v, want version %q", name, got, tt.want)
		}
	}
}

// TestVersions: a subscription is made for each version that is named.
func TestVersions(t *testing.T) {
	s, err := newSelector([]string{"pods.v1.", "widgets.v2.example.com", "things", "*.v1.apps"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := s.versions()
	slices.Sort(got)
	if diff := cmp.Diff([]string{"", "v1", "v2"}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}
