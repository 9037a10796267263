package print

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// ErrHungUp is the cause of a context that ends because the reader closed the output.
var ErrHungUp = errors.New("the reader closed the output")

// WriteHungUp writes to the closed pipe, so that the process ends silently by SIGPIPE where that exists.
func WriteHungUp(w io.Writer) error {
	if _, err := io.WriteString(w, "\n"); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// WhileRead returns a context that also ends, with the cause ErrHungUp, when the reader closes the output.
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
