package jsontext

import (
	"fmt"
	"testing"
)

// shareTwice passes text to a table twice, and returns the entry that the table then shares.
func shareTwice(t *testing.T, table *internTable, text string) *internedString {
	t.Helper()
	table.intern([]byte(text))
	e := table.intern([]byte(text))
	if e == nil || e.text != text {
		t.Fatalf("%q is not shared at its second occurrence", text)
	}
	return e
}

// collidingText returns another text that uses the slot of e.
func collidingText(e *internedString) string {
	for n := 0; ; n++ {
		text := fmt.Sprint("rival-", n)
		if uint32(sampleHash([]byte(text))>>(64-internBits)) == e.slot {
			return text
		}
	}
}

// TestEvictedStrings verifies that links to an evicted string are ignored, and that the evicted string links
// to no other strings. Such links would retain evicted strings without limit.
func TestEvictedStrings(t *testing.T) {
	table := &internTable{}
	first, second, third := shareTwice(t, table, "first"), shareTwice(t, table, "second"), shareTwice(t, table, "third")
	second.storeLink(&first.nextKey, first)
	third.storeLink(&second.nextKey, second)
	third.storeLink(&second.lastValue, second)
	if predictedString(&first.nextKey, []byte(`second":`)) != second ||
		predictedString(&first.nextKey, []byte(`second`)) != nil ||
		predictedString(&first.nextKey, []byte(`seconds":`)) != nil {
		t.Error("predictedString did not predict exactly the string that followed before")
	}
	shareTwice(t, table, collidingText(second))
	if predictedString(&first.nextKey, []byte(`second":`)) != nil {
		t.Error("predictedString predicted an evicted string")
	}
	if second.nextKey.Load() != nil || second.lastValue.Load() != nil {
		t.Error("an evicted string references others")
	}
	if third.storeLink(&second.nextKey, second); second.nextKey.Load() != nil {
		t.Error("storeLink linked an evicted string to others")
	}
	again := shareTwice(t, table, "second")
	if again.storeLink(&first.nextKey, first); predictedString(&first.nextKey, []byte(`second":`)) != again {
		t.Error("predictedString did not predict the string that replaced the evicted one")
	}
}
