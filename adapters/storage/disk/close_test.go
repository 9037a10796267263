package disk

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestCloseDuringUse verifies that Close waits for running loads and saves. Later calls return an error.
func TestCloseDuringUse(t *testing.T) {
	fs := vfs.NewMem()
	store := newStore(t, fs)
	var users sync.WaitGroup
	var started sync.WaitGroup
	for k := range 3 {
		content := openContent(t, store, fmt.Sprint("widgets", k))
		save(t, content, 1, numbered(2000, 1))
		started.Add(1)
		users.Go(func() { // ends with Close
			reportStarted := sync.OnceFunc(started.Done)
			defer reportStarted()
			for version := 2; ; version++ {
				_, _, err := load(content)
				if err == nil {
					err = saveAll(content, version, numbered(2000, version))
				}
				if err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
				reportStarted()
			}
		})
	}
	started.Wait()
	if err := store.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	users.Wait()
}
