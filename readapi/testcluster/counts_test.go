package testcluster

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestCountsStaySmall verifies that the injector counts requests without storing each of them.
func TestCountsStaySmall(t *testing.T) {
	injector := NewInjector(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	const requests = 1000
	for i := range requests {
		injector.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet,
			fmt.Sprintf("/apis/example.com/v1/widgets?resourceVersion=%d", i), nil))
	}
	if n := injector.Count(Match{Resource: "widgets"}); n != requests || len(injector.mu.counts) != 1 {
		t.Errorf("%d requests are counted in %d entries, want all in 1", n, len(injector.mu.counts))
	}
}
