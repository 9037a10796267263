package informer

import (
	"fmt"
	"testing"
)

// replacePartitions replaces partitions with one, as a partitionSet does.
func (f *feed) replacePartitions(selection Selection, parts ...*partition) *partition {
	f.Helper()
	s := &partitionSet{incarnation: f.partition.incarnation, started: true}
	joined := Partition{Selection: selection}
	for _, p := range parts {
		joined.Replaces = append(joined.Replaces, p.Selection)
	}
	p := s.partition(&joined)
	p.continueFrom(parts)
	f.ok(s.commitSet([]Partition{joined}, map[partitionKey]*partition{joined.key(): p}, parts))
	return p
}

// TestReplacedPartitions verifies that a partition that replaces two continues from the older version. Events
// that the other partition has applied are not applied again, and deleted objects do not return.
func TestReplacedPartitions(t *testing.T) {
	f := newFeed(t, Options{})
	log, parts := f.addSelections(selectInitials("a"), selectInitials("b"))
	a, b := parts[0], parts[1]
	f.listPartition(a, 10, object("x@a1", 10), object("y@a2", 8))
	f.listPartition(b, 10, object("z@b1", 9))
	f.ok(b.Update(object("z@b1", 12)))
	f.ok(b.Add(object("x@b2", 15))) // a has not received the deletion of its x
	f.ok(b.Add(object("w@b3", 16)))
	f.ok(b.Delete(object("w@b3", 17)))
	f.ok(b.Bookmark("20"))
	f.flush()
	log.take()

	j := f.replacePartitions(selectInitials("ab"), a, b)
	if j.version != "10" || j.latest() != "20" {
		t.Fatalf("the joined partition continues from %s and has reached %s, want 10 and 20", j.version,
			j.latest())
	}
	f.ok(j.Update(object("x@a1", 11))) // older than the object with the same name
	f.ok(j.Update(object("z@b1", 12)))
	f.ok(j.Delete(object("x@a1", 14)))
	f.ok(j.Add(object("x@b2", 15)))
	f.ok(j.Add(object("w@b3", 16)))
	f.ok(j.Delete(object("w@b3", 17)))
	f.flush()
	expect(t, "the known progress", log.take(), []string(nil))
	expect(t, "the keys", f.keys(), []string{"ns/x", "ns/y", "ns/z"})

	f.ok(j.Update(object("y@a2", 18)))
	f.ok(j.Update(object("z@b1", 21)))
	f.ok(j.Delete(object("x@b2", 22)))
	f.flush()
	expect(t, "news", log.take(), []string{"update y8 y18", "update z12 z21", "delete x22"})
	if len(j.aheadRanges) != 0 || j.version != "22" {
		t.Errorf("the joined partition has reached %s and its ranges %v, want 22 for all", j.version,
			j.aheadRanges)
	}
}

// TestReplacedTwice checks that a partition hands over its progress if it is replaced before it has caught
// up.
func TestReplacedTwice(t *testing.T) {
	f := newFeed(t, Options{})
	log, parts := f.addSelections(selectInitials("a"), selectInitials("b"), selectInitials("c"))
	for k, p := range parts {
		f.listPartition(p, 10*(k+1), object(fmt.Sprintf("x%d@%c1", k, 'a'+k), 10*(k+1)))
	}
	f.flush()
	log.take()
	narrowed := selectInitials("ab")
	ab := f.replacePartitions(narrowed, parts[0], parts[1])
	f.ok(ab.Update(object("x0@a1", 12)))
	abc := f.replacePartitions(selectInitials("abc"), ab, parts[2])
	if abc.version != "12" || abc.latest() != "30" {
		t.Fatalf("the joined partition continues from %s and has reached %s, want 12 and 30", abc.version,
			abc.latest())
	}
	for version, name := range map[int]string{19: "x1@b1", 20: "x1@b1", 30: "x2@c1"} {
		f.ok(abc.Update(object(name, version)))
	}
	f.flush()
	expect(t, "events", log.take(), []string{"update x010 x012"})
	f.ok(abc.Update(object("x1@b1", 31)))
	f.listPartition(abc, 32, object("x2@c1", 30))
	f.flush()
	expect(t, "events, and a list", log.sorted(), []string{"lost ns/x0 x012", "lost ns/x1 x131",
		"update x120 x131", "update x230 x230"})
}

// TestReplacedWithoutOrder verifies that if the versions of a replaced partition are not ordered, all objects
// are listed.
func TestReplacedWithoutOrder(t *testing.T) {
	f := newFeed(t, Options{})
	log, parts := f.addSelections(selectInitials("a"), selectInitials("b"))
	f.listPartition(parts[0], 10, object("x@a1", 10))
	f.ok(parts[1].Replace([]any{object("y@b1", 3)}, "three"))
	f.flush()
	log.take()
	j := f.replacePartitions(selectInitials("ab"), parts...)
	if j.version != "" || j.latest() != "" {
		t.Errorf("the joined partition continues from %q, want a list", j.version)
	}
	f.listPartition(j, 20, object("x@a1", 10))
	f.flush()
	expect(t, "events", log.take(), []string{"lost ns/y y3", "update x10 x10"})
}

// TestOnListed verifies that OnListed reports whether the versions are ordered.
func TestOnListed(t *testing.T) {
	f := newFeed(t, Options{})
	_, parts := f.addSelections(selectInitials("a"))
	var listed []bool
	parts[0].OnListed = func(ordered bool) { listed = append(listed, ordered) }
	f.ok(parts[0].Replace(nil, "three"))
	f.ok(parts[0].Replace(nil, ""))
	f.ok(parts[0].Replace(nil, "3"))
	if got := fmt.Sprint(listed); got != "[false false true]" {
		t.Errorf("OnListed got the values %s, want [false false true]", got)
	}
}
