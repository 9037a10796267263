package experiment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSample(t *testing.T) {
	all := []string{"a", "b", "c", "d", "e", "f"}
	if diff := cmp.Diff([]string{"a", "c", "e"}, sample(all, 3)); diff != "" {
		t.Errorf("three of six (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all, sample(all, 10)); diff != "" {
		t.Errorf("ten of six (-want +got):\n%s", diff)
	}
}
