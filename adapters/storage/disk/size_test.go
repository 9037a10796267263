package disk

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestSizeOnDisk saves new incompressible contents repeatedly. The files use at most 1.3 times the size of
// the last one.
func TestSizeOnDisk(t *testing.T) {
	fs := vfs.NewMem()
	random := rand.NewChaCha8([32]byte{})
	var bytes int64
	for round := 1; round <= 3; round++ {
		store := newStore(t, fs)
		content := openContent(t, store, "widgets")
		c := objectTexts{}
		bytes = 0
		for k := range 2000 {
			noise := make([]byte, 1500)
			_, _ = random.Read(noise) // never returns an error
			text := fmt.Sprintf(`{"number":%d,"text":%q}`, k, base64.RawStdEncoding.EncodeToString(noise))
			c[fmt.Sprintf("ns/object-%04d", k)] = text
			bytes += int64(len(text)) * 3 / 4 // the size of the random data before base64
		}
		save(t, content, round, c)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var onDisk int64
	for _, path := range listFiles(t, fs, "/state") {
		info, err := fs.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		onDisk += info.Size()
	}
	if onDisk > bytes*13/10 {
		t.Errorf("the files use %d bytes for %d bytes of data, want at most 1.3 times as many", onDisk, bytes)
	}
}
