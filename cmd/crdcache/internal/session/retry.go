package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// brieflyRetried is the time for which a request is repeated after errors that can be temporary, such as
	// those of an API server that restarts.
	brieflyRetried = 2 * time.Second
	// The pause between two attempts grows from minRetryPause to maxRetryPause.
	minRetryPause, maxRetryPause = 200 * time.Millisecond, 5 * time.Second
	throttledPause               = time.Second
)

// retryPeriod returns how long a command repeats a request that fails with err: not at all if the server
// refuses it or its answer cannot be decoded, and until --timeout if it asks for fewer requests or does not
// answer.
func retryPeriod(err error) time.Duration {
	var answer apierrors.APIStatus
	switch {
	case apierrors.IsTooManyRequests(err), isNetworkError(err):
		return math.MaxInt64
	case errors.As(err, &answer) && answer.Status().Code >= http.StatusInternalServerError:
		return brieflyRetried
	}
	return 0
}

// isNetworkError reports whether the connection failed. It returns false after --request-timeout.
func isNetworkError(err error) bool {
	var sent *url.Error
	var network net.Error
	return !errors.Is(err, context.DeadlineExceeded) && (errors.As(err, &sent) || errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}

// failures are the consecutive failures of a request.
type failures struct {
	target *Target
	name   string // of the type
	since  time.Time
}

func (t *Target) newFailures(name string) *failures { return &failures{target: t, name: name} }

// add returns the time for which the request may still be repeated. It prints the first failure.
func (f *failures) add(err error) (remaining time.Duration) {
	period := retryPeriod(err)
	if f.target.ReadsFiles() && !f.target.watchesServer {
		return 0 // files do not change while a command reads them
	}
	if f.target.watchesServer && period < math.MaxInt64 && !apierrors.IsBadRequest(err) {
		return math.MaxInt64 // watch and serve wait until the type can be read
	}
	if f.since.IsZero() {
		f.since = time.Now()
		announce := func() { f.target.Warnf("retrying: %s: %v", f.name, err) }
		switch {
		case period <= 0 || f.target.watchesServer:
		case isNetworkError(err):
			f.target.responses.announceFailure.Do(announce)
		default:
			announce()
		}
	}
	if period == math.MaxInt64 {
		return period
	}
	return period - time.Since(f.since)
}

// Retry calls request until it succeeds, its error is final, or ctx ends. name is the type for messages.
func (t *Target) Retry(ctx context.Context, name string, request func() error) error {
	failures := t.newFailures(name)
	var lastErr error
	for pause := minRetryPause; ; pause = min(2*pause, maxRetryPause) {
		err := request()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			if failures.add(err) <= pause {
				return err
			}
			lastErr = err
			select {
			case <-ctx.Done():
			case <-time.After(pause):
				continue
			}
		}
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return ctx.Err()
		}
		timeout := fmt.Errorf("%w: the API server at %s did not answer within %v", ErrNotSynced, t.Rest.Host,
			t.Timeout)
		if failure := t.responses.lastFailure.Load(); lastErr == nil && failure != nil {
			lastErr = *failure
		}
		if lastErr != nil {
			return fmt.Errorf("%w: %w", timeout, lastErr)
		}
		return timeout
	}
}

// retryThrottled calls request again while the server asks for fewer requests. It returns the last error.
func (t *Target) retryThrottled(ctx context.Context, request func() error) error {
	for {
		err := request()
		if !apierrors.IsTooManyRequests(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(throttledPause):
		}
	}
}
