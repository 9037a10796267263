package follow

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVersions returns each requested version.
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
