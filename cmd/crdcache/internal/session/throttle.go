package session

import (
	"net/http"
	"sync/atomic"
)

// throttle remembers whether the server's last answer was 429. client-go repeats such requests by itself, and its error
// does not mention the 429 when the time is up. The zero value is ready; its methods are safe for concurrent use.
type throttle struct{ last atomic.Bool }

// wrap records the answers that a transport receives.
func (t *throttle) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil {
			t.last.Store(response.StatusCode == http.StatusTooManyRequests)
		}
		return response, err
	})
}
