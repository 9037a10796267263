package store

import (
	"fmt"
	"testing"

	"k8s.io/client-go/tools/cache"
)

// slowIndexes is an Extractor that waits before its first result.
type slowIndexes struct {
	fixedIndexes
	asked, goOn chan struct{}
}

func (s *slowIndexes) KeysJSON(json []byte, keys [][]string) [][]string {
	select {
	case <-s.asked:
	default:
		close(s.asked)
	}
	<-s.goOn
	return s.fixedIndexes.KeysJSON(json, keys)
}

// TestReplacedTwiceAtOnce replaces an index concurrently: one result remains, whichever is complete first.
func TestReplacedTwiceAtOnce(t *testing.T) {
	for _, first := range []int{0, 1} {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			s := New(Options{Form: NewPacked(nil, nil),
				Extractors: []Extractor{&fixedIndexes{[]string{"a"}}}})
			fill(t, s, 3, 1)
			var both [2]*slowIndexes
			var ended [2]chan error
			for n := range both {
				e := &slowIndexes{fixedIndexes{[]string{"a"}}, make(chan struct{}), make(chan struct{})}
				both[n], ended[n] = e, make(chan error, 1)
				go func() { ended[n] <- s.AddExtractor(e, "a") }() // ends with goOn
				<-e.asked
			}
			for _, n := range []int{first, 1 - first} {
				close(both[n].goOn)
				if err := <-ended[n]; err != nil {
					t.Error(err)
				}
				if keys, err := s.Snapshot().KeysByIndex("a", "a value of a"); err != nil || len(keys) != 3 {
					t.Errorf("after %d: keys %v, error %v", n, keys, err)
				}
			}
			if err := s.AddIndexers(cache.Indexers{"a": byUID}); err == nil {
				t.Error("the name is not used")
			}
		})
	}
}
