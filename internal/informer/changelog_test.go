package informer

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// formatChanges returns the changes of a history, each formatted as version, key and kind.
func formatChanges(h History) []string {
	lines := []string{}
	for _, c := range h.Changes {
		operation := "updated"
		switch {
		case c.Old == nil:
			operation = "added"
		case c.New == nil:
			operation = "deleted"
		}
		lines = append(lines, fmt.Sprint(c.Version, " ", c.Key, " ", operation))
	}
	return lines
}

// TestHistoryHasEveryChangeOfTheWatch checks that the history has the change of each event, and the versions
// of bookmarks.
func TestHistoryHasEveryChangeOfTheWatch(t *testing.T) {
	f := newFeed(t, Options{})
	f.KeepHistory(100)
	if h := f.History(); h.Synced || h.Version != 0 {
		t.Errorf("before the list, History() = %+v, want not synced", h)
	}
	f.list(10, object("a", 5))
	before := f.History()
	f.put(object("b", 11), object("a", 12), object("a", 12))
	f.delete(object("b", 13))
	f.delete(object("stranger", 14))
	f.ok(f.partition.Bookmark("20"))
	h := f.History()
	want := []string{"11 ns/b added", "12 ns/a updated", "13 ns/b deleted"}
	if diff := cmp.Diff(want, formatChanges(h)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if !h.Synced || h.Oldest != 10 || h.Version != 20 || h.Snapshot.Len() != 1 {
		t.Errorf("the history has the versions %d to %d, synced: %v, want 10 to 20, true", h.Oldest,
			h.Version, h.Synced)
	}
	select {
	case <-before.Next:
	default:
		t.Error("Next is not closed after a change")
	}
	if len(before.Changes) != 0 || before.Version != 10 {
		t.Errorf("the earlier history has changed to %+v", before)
	}
}

// TestHistoryRestartsWithoutOrder checks that the history restarts at a change that is not the next event of
// the same watch.
func TestHistoryRestartsWithoutOrder(t *testing.T) {
	for name, happens := range map[string]func(*feed){
		"relist":            func(f *feed) { f.list(30, object("a", 30)) },
		"missed deletion":   func(f *feed) { f.put(object("a@other", 30)) },
		"another order":     func(f *feed) { f.ok(f.partition.Bookmark("30")); f.put(object("b", 29)) },
		"no version":        func(f *feed) { f.ok(f.partition.Bookmark("30")); f.put(object("a", 0)) },
		"type that is gone": func(f *feed) { f.stopIncarnation(); f.ok(f.Forget()); f.startIncarnation(); f.list(30) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed(t, Options{})
			f.KeepHistory(100)
			f.list(10, object("a", 5))
			f.put(object("a", 11))
			happens(f)
			if h := f.History(); h.Oldest != 30 || h.Version != 30 || len(h.Changes) != 0 {
				t.Errorf("the history has the versions %d to %d and the changes %q, want only version 30",
					h.Oldest, h.Version, formatChanges(h))
			}
		})
	}
}

// TestHistoryIsBounded checks that the oldest changes are dropped, and that Oldest is updated.
func TestHistoryIsBounded(t *testing.T) {
	f := newFeed(t, Options{})
	f.KeepHistory(2)
	f.list(10)
	for version := 11; version < 20; version++ {
		f.put(object("a", version))
		h := f.History()
		if len(h.Changes) > 4 || int(h.Version) != version || int(h.Oldest) != version-len(h.Changes) {
			t.Fatalf("at version %d the history has the versions %d to %d and the changes %q", version,
				h.Oldest, h.Version, formatChanges(h))
		}
	}
}
