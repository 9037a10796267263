package store

import (
	"fmt"
	"testing"

	"k8s.io/client-go/tools/cache"
)

// slowExtractor is an Extractor that waits for resume. It closes started at its first call.
type slowExtractor struct {
	fixedExtractor
	started, resume chan struct{}
}

func (s *slowExtractor) KeysJSON(json []byte, keys [][]string) [][]string {
	select {
	case <-s.started:
	default:
		close(s.started)
	}
	<-s.resume
	return s.fixedExtractor.KeysJSON(json, keys)
}

// TestConcurrentReplacement replaces an index twice at the same time. Reads by the index work after each
// replacement, whichever is complete first, and the name stays in use.
func TestConcurrentReplacement(t *testing.T) {
	for _, first := range []int{0, 1} {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			s := New(Options{Format: NewPacked(nil, nil),
				Extractors: []Extractor{&fixedExtractor{[]string{"a"}}}})
			replaceAll(t, s, 3, 1)
			var extractors [2]*slowExtractor
			var ended [2]chan error
			for n := range extractors {
				e := &slowExtractor{fixedExtractor{[]string{"a"}}, make(chan struct{}), make(chan struct{})}
				extractors[n], ended[n] = e, make(chan error, 1)
				go func() { ended[n] <- s.AddExtractor(e, "a") }() // ends after resume is closed
				<-e.started
			}
			for _, n := range []int{first, 1 - first} {
				close(extractors[n].resume)
				if err := <-ended[n]; err != nil {
					t.Error(err)
				}
				if keys, err := s.Snapshot().KeysByIndex("a", "a value of a"); err != nil || len(keys) != 3 {
					t.Errorf("after replacement %d: KeysByIndex() = %v, %v, want 3 keys", n, keys, err)
				}
			}
			if err := s.AddIndexers(cache.Indexers{"a": byUID}); err == nil {
				t.Error("AddIndexers succeeded for the name of an existing index")
			}
		})
	}
}
