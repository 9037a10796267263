package experiment

import (
	"testing"
	"time"
)

func TestQueriesAreMeasured(t *testing.T) {
	for _, objects := range []int{1000, 3000} {
		outcome, err := measureQueries(t.Context(), Task{Objects: objects, Subject: Ours,
			Budget: time.Millisecond}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, metric := range []string{QueryFew, QuerySorted, QueryKeys, QuerySortedKeys, QueryFirst,
			QueryDangling} {
			if outcome.Metrics[metric] <= 0 {
				t.Errorf("%s is not measured", metric)
			}
		}
	}
}
