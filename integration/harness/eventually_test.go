package harness

import (
	"context"
	"errors"
	"testing"
)

func TestEventually(t *testing.T) {
	t.Run("repeats until there is no error", func(t *testing.T) {
		calls := 0
		Eventually(t, func(context.Context) error {
			if calls++; calls < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		if calls != 3 {
			t.Errorf("called %d times, want 3", calls)
		}
	})
	t.Run("ends with the last error", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		last := errors.New("still not")
		err := eventually(ctx, func(context.Context) error {
			cancel()
			return last
		})
		if !errors.Is(err, last) || !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v, want both the last and the context's", err)
		}
	})
}
