package disk

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
)

func key(n byte) []byte { return bytes.Repeat([]byte{n}, keyLength) }

func openEncrypted(t *testing.T, fs vfs.FS, keys ...[]byte) (*Store, *storedContent) {
	t.Helper()
	s := New("/state", Options{fs: fs, Keys: keys})
	t.Cleanup(func() { _ = s.Close() })
	return s, openContent(t, s, "widgets").(*storedContent)
}

// TestKeys verifies that content can be loaded only with a key that it was saved with, and that keys can be
// changed.
func TestKeys(t *testing.T) {
	fs := vfs.NewMem()
	reopen := func(keys ...[]byte) *storedContent {
		s, v := openEncrypted(t, fs, keys...)
		t.Cleanup(func() { _ = s.Close() })
		return v
	}
	closeStore := func(v *storedContent) {
		t.Helper()
		if err := v.store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	expectErrKey := func(reason string, keys ...[]byte) {
		t.Helper()
		v := reopen(keys...)
		defer closeStore(v)
		if _, ok, err := v.Checkpoint(context.Background()); ok || !errors.Is(err, ErrKey) {
			t.Errorf("%s: Checkpoint() = %v, %v, want ErrKey", reason, ok, err)
		}
		if all, err := loadBlocks(v); !errors.Is(err, ErrKey) || len(all.Changes)+len(all.Blocks) > 0 {
			t.Errorf("%s: loadBlocks() = %v, %v, want ErrKey", reason, all, err)
		}
	}
	want := blockContent{map[string]string{"a head": "some bodies"}, []string{"odd json of odd false"}}
	expectContent := func(reason string, needsRewrite bool, keys ...[]byte) {
		t.Helper()
		v := reopen(keys...)
		defer closeStore(v)
		if _, ok, err := v.Checkpoint(context.Background()); !ok || err != nil {
			t.Errorf("%s: Checkpoint() = %v, %v, want true", reason, ok, err)
		}
		got, err := loadBlocks(v)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: loadBlocks: %v (-want +got):\n%s", reason, err, diff)
		}
		if v.NeedsRewrite() != needsRewrite {
			t.Errorf("%s: NeedsRewrite() = %v, want %v", reason, v.NeedsRewrite(), needsRewrite)
		}
	}
	save := func(keys ...[]byte) {
		t.Helper()
		v := reopen(keys...)
		defer closeStore(v)
		saveBlocks(t, v, want.Blocks, "odd")
	}
	save(key(1))
	expectContent("the key", false, key(1))
	expectContent("the old key after another", true, key(2), key(1))
	expectContent("the key before an older one", false, key(1), key(2))
	expectErrKey("another key", key(2))
	expectErrKey("no key")
	save(key(2), key(1))
	expectContent("the new key alone", false, key(2))
	expectErrKey("the old key alone", key(1))
	save()
	expectErrKey("a key for unencrypted content", key(1))
	expectContent("no key for unencrypted content", false)
}

// TestWrongKeys verifies that keys of the wrong length are rejected.
func TestWrongKeys(t *testing.T) {
	s := New(t.TempDir(), Options{Keys: [][]byte{key(1), []byte("too short")}})
	if _, err := s.Open(context.Background(), "widgets"); err == nil ||
		!strings.Contains(err.Error(), "Options.Keys[1] has 9 bytes") {
		t.Errorf("Open() = %v, want an error about the key's length", err)
	}
}

// TestSealed verifies that the files contain no plaintext, and that modified and moved records are reported
// as damaged.
func TestSealed(t *testing.T) {
	fs := vfs.NewMem()
	s, v := openEncrypted(t, fs, key(1))
	saveBlocks(t, v, map[string]string{"a confidential head": "some confidential bodies"}, "confidential")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range listFiles(t, fs, "/state") {
		f, err := fs.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		text := make([]byte, info.Size())
		if _, err := f.ReadAt(text, 0); err != nil && len(text) > 0 {
			t.Fatal(err)
		}
		for _, word := range []string{"confidential", "widgets"} {
			if bytes.Contains(text, []byte(word)) {
				t.Errorf("%s contains the plaintext %q", path, word)
			}
		}
	}
	for name, change := range map[string]func(v *storedContent, db *pebble.DB, value []byte) error{
		"changed": func(v *storedContent, db *pebble.DB, value []byte) error {
			value[len(value)-1] ^= 1
			return db.Set(v.numberedKey(blockPrefix, 0), value, pebble.Sync)
		},
		"moved": func(v *storedContent, db *pebble.DB, value []byte) error {
			return db.Set(v.numberedKey(blockPrefix, 1), value, pebble.Sync)
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, v := openEncrypted(t, vfs.NewMem(), key(1))
			saveBlocks(t, v, map[string]string{"a head": "some bodies"})
			_, err := v.store.withEngine(0, func(_ *engine, db *pebble.DB) error {
				value, closer, err := db.Get(v.numberedKey(blockPrefix, 0))
				if err != nil {
					return err
				}
				value = bytes.Clone(value)
				return errors.Join(closer.Close(), change(v, db, value))
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := loadBlocks(v); !errors.Is(err, errDamaged) {
				t.Errorf("loading modified records = %v, want errDamaged", err)
			}
		})
	}
}

// TestNonces verifies that equal contents are encrypted differently.
func TestNonces(t *testing.T) {
	s, err := newRecordCipher([][]byte{key(1)})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(s.seal([]byte("place"), []byte("record")), s.seal([]byte("place"), []byte("record"))) {
		t.Error("seal() returned the same ciphertext twice")
	}
}
