package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"
)

// TestWatchesAreBounded verifies that watches end after the maximum time, whatever their clients request.
func TestWatchesAreBounded(t *testing.T) {
	serving, end := context.WithCancel(t.Context())
	times := &watchLimits{min: 10 * time.Second, max: 20 * time.Second, servingCtx: serving}
	var seconds string
	var deadline time.Time
	var ctx context.Context
	handler := times.limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx = r.Context()
		seconds = r.URL.Query().Get("timeoutSeconds")
		deadline, _ = ctx.Deadline()
		if serving.Err() != nil {
			<-ctx.Done()
		}
	}))
	request := func(query string) {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet,
			"/x?watch=1"+query, nil))
	}
	for query, between := range map[string][2]int{
		"": {10, 20}, "&timeoutSeconds=0": {10, 20}, "&timeoutSeconds=9223372036": {10,
			20}, "&timeoutSeconds=7": {7, 7},
		"&timeoutSeconds=-5": {10, 20}, "&timeoutSeconds=86400&timeoutSeconds=5": {10, 20},
	} {
		for range 20 {
			request(query)
			if n, err := strconv.Atoi(seconds); err != nil || n < between[0] || n > between[1] {
				t.Errorf("watch %q lasts %s s, want %v", query, seconds, between)
			}
			if longest := time.Now().Add(20*time.Second + watchGrace); deadline.After(longest) {
				t.Errorf("watch %q has the deadline %v, want at most the maximum", query, deadline)
			}
		}
	}
	request("&timeoutSeconds=soon")
	if seconds != "soon" {
		t.Errorf("an invalid timeout became %q, want no change", seconds)
	}
	end()
	request("") // ends immediately
}
