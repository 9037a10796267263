package store

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/client-go/tools/cache"
)

type fixedExtractor struct{ names []string }

func (f *fixedExtractor) Names() []string  { return f.names }
func (f *fixedExtractor) Ordered(int) bool { return false }

func (f *fixedExtractor) Indexers() cache.Indexers {
	all := cache.Indexers{}
	for _, name := range f.names {
		all[name] = func(any) ([]string, error) { return []string{"a value of " + name}, nil }
	}
	return all
}

func (f *fixedExtractor) KeysJSON(_ []byte, keys [][]string) [][]string {
	for _, name := range f.names {
		keys = append(keys, []string{"a value of " + name})
	}
	return keys
}

// TestReloadsDoNotGrow checks that reloading a config often does not grow the memory of objects that
// never change.
func TestReloadsDoNotGrow(t *testing.T) {
	s := New(Options{Indexers: byNamespace(), Format: NewPacked(nil, nil),
		Extractors: []Extractor{&fixedExtractor{[]string{"a", "b"}}}})
	replaceAll(t, s, 10, 1)
	size := func() int {
		total := 0
		for r := range s.Snapshot().rows.all {
			total += len(r.values())
		}
		return total
	}
	before := size()
	for n := range 100 {
		if err := s.AddExtractor(&fixedExtractor{[]string{"a", "b"}}, "a", "b"); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint("extra-", n)
		if err := s.AddIndexers(cache.Indexers{name: byUID}); err != nil {
			t.Fatal(err)
		}
		s.RemoveIndexes(name)
	}
	if err := s.AddExtractor(&fixedExtractor{[]string{"a", "b"}}, "a", "b"); err != nil {
		t.Fatal(err)
	}
	if after := size(); after > before+10*10 { // the varints of the functions' ids grow
		t.Errorf("the index values of 10 objects grew from %d to %d bytes", before, after)
	}
	for _, name := range []string{"a", "b"} {
		if keys, err := s.Snapshot().KeysByIndex(name, "a value of "+name); err != nil || len(keys) != 10 {
			t.Errorf("%d objects in index %s (%v), want 10", len(keys), name, err)
		}
	}
	replaceAll(t, s, 5, 2) // a list removes the values of dropped indexes
	for _, name := range []string{"a", "b"} {
		if keys, err := s.Snapshot().KeysByIndex(name, "a value of "+name); err != nil || len(keys) != 5 {
			t.Errorf("%d objects in index %s after the list (%v), want 5", len(keys), name, err)
		}
	}
}

// endingExtractor ends its addition after some objects.
type endingExtractor struct {
	fixedExtractor
	objects int
}

func (e *endingExtractor) CheckBuild() error {
	if e.objects--; e.objects == 0 {
		return errors.New("enough")
	}
	return nil
}

// TestBuildEnds verifies that an addition that is ended leaves nothing behind.
func TestBuildEnds(t *testing.T) {
	s := New(Options{Indexers: byNamespace(), Format: NewPacked(nil, nil)})
	replaceAll(t, s, 100, 1)
	e := &endingExtractor{fixedExtractor{[]string{"a", "b"}}, 50}
	if err := s.AddExtractor(e); err == nil || err.Error() != "enough" || e.objects != 0 {
		t.Errorf("AddExtractor() = %v with %d objects left, want the error after 50 objects", err, e.objects)
	}
	replaceAll(t, s, 100, 2)
	for _, name := range []string{"a", "b"} {
		if _, ok := s.Snapshot().Index(name); ok {
			t.Errorf("the index %s exists, want none", name)
		}
	}
	if err := s.AddExtractor(&fixedExtractor{[]string{"a", "b"}}); err != nil {
		t.Errorf("AddExtractor() after the end = %v, want no error", err)
	}
}
