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
	var using sync.WaitGroup
	var begun sync.WaitGroup
	for k := range 3 {
		v := openContent(t, s, fmt.Sprint("widgets", k))
		save(t, v, 1, numbered(2000, 1))
		begun.Add(1)
		using.Go(func() { // ended by Close
			first := sync.OnceFunc(begun.Done)
			defer first()
			for round := 2; ; round++ {
				_, _, err := load(v)
				if err == nil {
					err = saveAll(v, round, numbered(2000, round))
				}
				if err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
				first()
			}
		})
	}
	begun.Wait()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	using.Wait()
}
