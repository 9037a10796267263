package informer

import (
	"testing"

	"github.com/crdcache/crdcache/internal/testkit"
)

// TestForeign verifies that the types have every method of client-go's interfaces.
func TestForeign(t *testing.T) {
	for name, missing := range map[string][]string{
		"Informer":     testkit.Unimplemented[foreignInformer](&Informer{}),
		"indexer":      testkit.Unimplemented[foreignIndexer](&indexer{}),
		"Registration": testkit.Unimplemented[foreignRegistration](&Registration{}),
	} {
		if missing != nil {
			t.Errorf("%s lacks the methods %q", name, missing)
		}
	}
	type incomplete struct{ foreignRegistration }
	if got := testkit.Unimplemented[foreignRegistration](&incomplete{}); len(got) != 2 {
		t.Errorf("a type without methods lacks the methods %q, want two", got)
	}
}
