package jsontext

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unsafe"
)

// shareTwice lets a table share text, and returns the entry.
func shareTwice(t *testing.T, table *internTable, text string) *internedString {
	t.Helper()
	table.intern([]byte(text))
	e := table.intern([]byte(text))
	if e == nil || e.text != text {
		t.Fatalf("%q is not shared when it occurs again", text)
	}
	return e
}

// collidingText returns another text with the slot of e.
func collidingText(e *internedString) string {
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
	if predictedString(&first.nextKey, []byte(`second":`)) != second ||
		predictedString(&first.nextKey, []byte(`second`)) != nil ||
		predictedString(&first.nextKey, []byte(`seconds":`)) != nil {
		t.Error("what came next is not guessed, or something else is")
	}
	shareTwice(t, table, collidingText(second))
	if predictedString(&first.nextKey, []byte(`second":`)) != nil {
		t.Error("an evicted string is guessed")
	}
	if second.nextKey.Load() != nil || second.lastValue.Load() != nil {
		t.Error("an evicted string refers to others")
	}
	if third.storeLink(&second.nextKey, second); second.nextKey.Load() != nil {
		t.Error("a reader links an evicted string to others")
	}
	again := shareTwice(t, table, "second")
	if again.storeLink(&first.nextKey, first); predictedString(&first.nextKey, []byte(`second":`)) != again {
		t.Error("the string is not guessed that has the slot now")
	}
}

// TestLine limits the size of an entry to a cache line.
func TestLine(t *testing.T) {
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
			t.Errorf("%s: a duplicate key is found: %v", text, found)
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
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(text)-1, err)
		}
	}
}
