package jsontext

import (
	"fmt"
	"testing"
	"unsafe"
)

// kept lets a table share text, and returns the entry.
func kept(t *testing.T, table *internTable, text string) *interned {
	t.Helper()
	table.share([]byte(text))
	e := table.share([]byte(text))
	if e == nil || e.text != text {
		t.Fatalf("%q is not shared when it occurs again", text)
	}
	return e
}

// rival returns another text with the slot of e.
func rival(e *interned) string {
	for n := 0; ; n++ {
		text := fmt.Sprint("rival-", n)
		if uint32(mix([]byte(text))>>(64-internBits)) == e.slot {
			return text
		}
	}
}

// TestEvictedStrings checks that an evicted string is not guessed and retains no others, because chains of
// them could grow without limit.
func TestEvictedStrings(t *testing.T) {
	table := &internTable{}
	first, second, third := kept(t, table, "first"), kept(t, table, "second"), kept(t, table, "third")
	second.follow(&first.next, first)
	third.follow(&second.next, second)
	third.follow(&second.usual, second)
	if guess(&first.next, []byte(`second":`)) != second || guess(&first.next, []byte(`second`)) != nil ||
		guess(&first.next, []byte(`seconds":`)) != nil {
		t.Error("what came next is not guessed, or something else is")
	}
	kept(t, table, rival(second))
	if guess(&first.next, []byte(`second":`)) != nil {
		t.Error("an evicted string is guessed")
	}
	if second.next.Load() != nil || second.usual.Load() != nil {
		t.Error("an evicted string refers to others")
	}
	if third.follow(&second.next, second); second.next.Load() != nil {
		t.Error("a reader links an evicted string to others")
	}
	again := kept(t, table, "second")
	if again.follow(&first.next, first); guess(&first.next, []byte(`second":`)) != again {
		t.Error("the string is not guessed that has the slot now")
	}
}

// TestLine limits the size of an entry to a cache line.
func TestLine(t *testing.T) {
	if size := unsafe.Sizeof(interned{}); size > 64 {
		t.Errorf("an entry has %d bytes, want no more than 64", size)
	}
}
