package disk

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

func key(n byte) []byte { return bytes.Repeat([]byte{n}, 32) }

// TestKeys verifies that content can be loaded only with a key that it was saved with, and that keys can be
// changed.
func TestKeys(t *testing.T) {
	dir, objects := t.TempDir(), numbered(3, 1)
	with := func(keys [][]byte, f func(c *storedContent)) {
		t.Helper()
		s := newStore(t, dir, Options{Keys: keys})
		f(openContent(t, s, "widgets"))
		closeStore(t, s)
	}
	expectErrKey := func(reason string, keys ...[]byte) {
		t.Helper()
		with(keys, func(c *storedContent) {
			if version, texts, err := load(c); !errors.Is(err, ErrKey) || version != "" || len(texts) > 0 {
				t.Errorf("%s: load() = %q, %d objects, %v, want ErrKey", reason, version, len(texts), err)
			}
		})
	}
	expectContent := func(reason string, needsRewrite bool, keys ...[]byte) {
		t.Helper()
		with(keys, func(c *storedContent) {
			expect(t, c, "1", objects.texts())
			if c.NeedsRewrite() != needsRewrite {
				t.Errorf("%s: NeedsRewrite() = %v, want %v", reason, c.NeedsRewrite(), needsRewrite)
			}
		})
	}
	saveWith := func(keys ...[]byte) { with(keys, func(c *storedContent) { save(t, c, 1, objects) }) }
	saveWith(key(1))
	expectContent("the key", false, key(1))
	expectContent("the old key after another", true, key(2), key(1))
	expectContent("the key before an older one", false, key(1), key(2))
	expectErrKey("another key", key(2))
	expectErrKey("no key")
	with([][]byte{key(2), key(1)}, func(c *storedContent) {
		expect(t, c, "1", objects.texts())
		if err := saveChanges(c, 1, objects, objects); err != nil {
			t.Fatal(err)
		}
	})
	expectErrKey("an old key before changes", key(2))
	saveWith(key(2), key(1))
	expectContent("the new key alone", false, key(2))
	expectErrKey("the old key alone", key(1))
	saveWith()
	expectErrKey("a key for unencrypted content", key(1))
	expectContent("no key for unencrypted content", false)
}

// TestWrongKeys verifies that keys of the wrong length are rejected.
func TestWrongKeys(t *testing.T) {
	s := New(t.TempDir(), Options{Keys: [][]byte{key(1), []byte("too short")}})
	if _, err := s.Open(context.Background(), viewOf("widgets")); err == nil ||
		!strings.Contains(err.Error(), "Options.Keys[1] has 9 bytes") {
		t.Errorf("Open() = %v, want an error about the key's length", err)
	}
}

// TestSealed verifies that the files contain no plaintext, that equal contents are encrypted differently, and
// that the name of a file does not contain its type.
func TestSealed(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir, Options{Keys: [][]byte{key(1)}})
	c := openContent(t, s, "confidentials")
	var texts [][]byte
	for range 2 {
		save(t, c, 1, objectTexts{"a": "confidential"})
		for _, path := range listFiles(t, dir) {
			text := append([]byte(path), read(t, path)...)
			if bytes.Contains(text, []byte("confidential")) {
				t.Errorf("%s contains the plaintext", path)
			}
			texts = append(texts, text)
		}
	}
	if slices.EqualFunc(texts[:2], texts[2:], bytes.Equal) {
		t.Error("equal contents have equal files")
	}
}
