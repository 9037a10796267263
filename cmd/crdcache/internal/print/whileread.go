package print

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// ErrHungUp is the end of a command whose output nobody reads any more.
var ErrHungUp = errors.New("the reader of the output is gone")

// WriteHungUp ends a command whose output nobody reads any more as any writing to a closed pipe does: in
// silence, by a signal, where there are such.
func WriteHungUp(w io.Writer) error {
	if _, err := io.WriteString(w, "\n"); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// WhileRead returns a context that ends with ctx, with the returned func, and as soon as nobody can read any
// more what is written to w. The cause is ErrHungUp then.
func WhileRead(ctx context.Context, w io.Writer) (context.Context, context.CancelFunc) {
	reading, end := context.WithCancelCause(ctx)
	file := File(w)
	if file == nil {
		return reading, func() { end(nil) }
	}
	gone := Hangup(file, reading.Done())
	go func() { // ended by the context
		select {
		case <-gone:
			end(ErrHungUp)
		case <-reading.Done():
		}
	}()
	return reading, func() { end(nil) }
}
