package disk

import (
	"errors"
	"fmt"
	"sync"
	"testing"
)

// TestCloseDuringUse verifies that Close waits for running loads and saves. Later calls return an error.
func TestCloseDuringUse(t *testing.T) {
	store := newStore(t, t.TempDir(), Options{})
	var users sync.WaitGroup
	var started sync.WaitGroup
	for k := range 3 {
		content := openContent(t, store, fmt.Sprint("widgets", k))
		save(t, content, 1, numbered(200, 1))
		started.Add(1)
		users.Go(func() { // ends with Close
			reportStarted := sync.OnceFunc(started.Done)
			defer reportStarted()
			for version := 2; ; version++ {
				_, _, err := load(content)
				if err == nil {
					err = saveAll(content, version, numbered(200, version))
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
	closeStore(t, store)
	users.Wait()
}
