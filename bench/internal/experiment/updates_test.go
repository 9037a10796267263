package experiment

import "testing"

func TestEventTimes(t *testing.T) {
	s := newEventTimes(2)
	s.record("initial/object")
	s.begin()
	s.record("ns/a")
	first := s.times()["ns/a"]
	s.record("ns/a")
	select {
	case <-s.complete:
		t.Fatal("the same object counts twice")
	default:
	}
	s.record("ns/b")
	select {
	case <-s.complete:
	default:
		t.Fatalf("two of two keys were seen, but complete is not closed: %s", s)
	}
	s.record("ns/c")
	if times := s.times(); len(times) != 2 || !times["ns/a"].Equal(first) {
		t.Errorf("seen were %v, want a and b, each when it was first seen", times)
	}
}
