package experiment

import "testing"

func TestSightings(t *testing.T) {
	s := newSightings(2)
	s.see("initial/object")
	s.begin()
	s.see("ns/a")
	first := s.times()["ns/a"]
	s.see("ns/a")
	select {
	case <-s.complete:
		t.Fatal("the same object counts twice")
	default:
	}
	s.see("ns/b")
	select {
	case <-s.complete:
	default:
		t.Fatalf("two of two were seen, and it is not complete: %s", s)
	}
	s.see("ns/c")
	if seen := s.times(); len(seen) != 2 || !seen["ns/a"].Equal(first) {
		t.Errorf("seen were %v, want a and b, each when it was first seen", seen)
	}
}
