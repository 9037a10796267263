package jsontext

import (
	"fmt"
	"testing"
	"unsafe"
)

// shareTwice lets a table share text, and returns the entry.
func shareTwice(t *testing.T, table *internTable, text string) *interned {
	t.Helper()
	table.share([]byte(text))
	e := table.share([]byte(text))
	if e == nil || e.text != text {
		t.Fatalf("%q is not shared when it occurs again", text)
	}
	return e
}

// collidingText returns another text with the slot of e.
func collidingText(e *interned) string {
	for n := 0; ; n++ {
		text := fmt.Sprint("rival-", n)
		if uint32(sampleHash([]byte(text))>>(64-internBits)) == e.slot {
			return text
		}
	}
}

// TestEvictedStrings checks that an evicted string is not guessed and retains no others, because chains of
// them could grow without limit.
func TestEvictedStrings(t *testing.T) {
	table := &internTable{}
	first, second, third := shareTwice(t, table, "first"), shareTwice(t, table, "second"), shareTwice(t, table, "third")
	second.storeLink(&first.nextKey, first)
	third.storeLink(&second.nextKey, second)
	third.storeLink(&second.lastValue, second)
	if predicted(&first.nextKey, []byte(`second":`)) != second || predicted(&first.nextKey, []byte(`second`)) != nil ||
		predicted(&first.nextKey, []byte(`seconds":`)) != nil {
		t.Error("what came next is not guessed, or something else is")
	}
	shareTwice(t, table, collidingText(second))
	if predicted(&first.nextKey, []byte(`second":`)) != nil {
		t.Error("an evicted string is guessed")
	}
	if second.nextKey.Load() != nil || second.lastValue.Load() != nil {
		t.Error("an evicted string refers to others")
	}
	if third.storeLink(&second.nextKey, second); second.nextKey.Load() != nil {
		t.Error("a reader links an evicted string to others")
	}
	again := shareTwice(t, table, "second")
	if again.storeLink(&first.nextKey, first); predicted(&first.nextKey, []byte(`second":`)) != again {
		t.Error("the string is not guessed that has the slot now")
	}
}

// TestLine limits the size of an entry to a cache line.
func TestLine(t *testing.T) {
	if size := unsafe.Sizeof(interned{}); size > 64 {
		t.Errorf("an entry has %d bytes, want no more than 64", size)
	}
}
