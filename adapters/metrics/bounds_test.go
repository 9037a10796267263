package metrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// TestHandlersAreBounded verifies that handlers of one name share a series, and so do handlers beyond the
// limit.
func TestHandlersAreBounded(t *testing.T) {
	var all []status.Handler
	for n := range 3 * maxHandlers {
		all = append(all, status.Handler{Name: fmt.Sprint("user ", n), Depth: 1, Lag: time.Duration(n)})
	}
	all = append(all, status.Handler{Name: "user 0", Depth: 5, Lag: time.Hour}, status.Handler{Depth: 1})
	got := limitHandlers(all)
	if len(got) != maxHandlers+1 {
		t.Fatalf("got %d handlers, want maxHandlers and one for the others: %+v", len(got), got)
	}
	if first := got[0]; first.Name != "user 0" || first.Depth != 6 || first.Lag != time.Hour {
		t.Errorf("two handlers of one name: got %+v, want their sum", first)
	}
	if last := got[maxHandlers]; last.Name != othersLabel || last.Depth != 2*maxHandlers+1 ||
		last.Lag != 3*maxHandlers-1 {
		t.Errorf("handlers above the limit: got %+v, want their sum", last)
	}
}

func TestIndexesAreBounded(t *testing.T) {
	var all []status.IndexMetrics
	for n := range maxIndexes + 2 {
		all = append(all, status.IndexMetrics{Name: fmt.Sprint("index ", n), Values: 2, Entries: 3})
	}
	got := limitIndexes(all)
	if last := got[len(got)-1]; len(got) != maxIndexes+1 ||
		last != (status.IndexMetrics{Name: othersLabel, Values: 4, Entries: 6}) {
		t.Errorf("got %d indexes, of which the last is %+v, want the sum of the others", len(got), last)
	}
}
