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
	s := newStore(t, fs)
	var users sync.WaitGroup
	var started sync.WaitGroup
	for k := range 3 {
		v := openContent(t, s, fmt.Sprint("widgets", k))
		save(t, v, 1, numbered(2000, 1))
		started.Add(1)
		users.Go(func() { // ends with Close
			reportStarted := sync.OnceFunc(started.Done)
			defer reportStarted()
			for version := 2; ; version++ {
				_, _, err := load(v)
				if err == nil {
					err = saveAll(v, version, numbered(2000, version))
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
	if err := s.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	users.Wait()
}
