package jsontext

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unsafe"
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

// TestEntryFitsIntoCacheLine verifies that an entry of the table of shared strings fits into a cache line.
func TestEntryFitsIntoCacheLine(t *testing.T) {
	if size := unsafe.Sizeof(internedString{}); size > 64 {
		t.Errorf("an entry has %d bytes, want no more than 64", size)
	}
}

// TestDuplicateBesideLargeNumbers verifies that duplicate keys are found in JSON with a number out of range,
// which is syntactically valid.
func TestDuplicateBesideLargeNumbers(t *testing.T) {
	for text, want := range map[string]bool{
		`1e999`: false, `{"a":1e999}`: false, `[1e999,1]`: false, `{"a":1e999,"b":1,"b":2}`: true,
	} {
		if _, _, found := Duplicate([]byte(text)); found != want {
			t.Errorf("Duplicate(%s) found a key: %v, want %v", text, found, want)
		}
	}
}

// TestStreamOfLargeValue verifies that a value that arrives in many parts is complete.
func TestStreamOfLargeValue(t *testing.T) {
	text := "[" + strings.Repeat(`"name\\\"space/{[name",{"a":[]},12,`, 1<<12) + "1] "
	for name, source := range map[string]io.Reader{
		"halves": iotest.HalfReader(strings.NewReader(text)), "whole": strings.NewReader(text),
	} {
		got, err := NewStream(source).Value()
		if err != nil || string(got) != text[:len(text)-1] {
			t.Errorf("%s: got %d of %d bytes, %v", name, len(got), len(text)-1, err)
		}
	}
}
