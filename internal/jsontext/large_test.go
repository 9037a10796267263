package jsontext

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestDuplicateBesideLargeNumbers: a number out of range is syntactically valid.
func TestDuplicateBesideLargeNumbers(t *testing.T) {
	for text, want := range map[string]bool{
		`1e999`: false, `{"a":1e999}`: false, `[1e999,1]`: false, `{"a":1e999,"b":1,"b":2}`: true,
	} {
		if _, _, found := Duplicate([]byte(text)); found != want {
			t.Errorf("%s: a duplicate key is found: %v", text, found)
		}
	}
}

// TestStreamOfLargeValue: a value that arrives in many parts is complete.
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
