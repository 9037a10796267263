package experiment

import (
	"testing"
	"time"
)

func TestQueriesAreMeasured(t *testing.T) {
	for _, objects := range []int{1000, 3000} {
		outcome, err := measureQueries(t.Context(), Task{Objects: objects, Subject: Crdcache,
			Budget: time.Millisecond}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, metric := range []string{QueryFew, QuerySorted, QueryKeys, QuerySortedKeys, QueryDangling} {
			if outcome.Metrics[metric] <= 0 {
				t.Errorf("the outcome has no metric %s", metric)
			}
		}
	}
}
