package controlplane

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestControlNeedsTheToken(t *testing.T) {
	next := http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	handler := requireToken("secret", next)
	for header, want := range map[string]int{
		"":              http.StatusUnauthorized,
		"Bearer wrong":  http.StatusUnauthorized,
		"Bearer secret": http.StatusNoContent,
	} {
		request := httptest.NewRequest(http.MethodPost, "/down", nil)
		request.Header.Set("Authorization", header)
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		if recorder.Code != want {
			t.Errorf("%q: %d, want %d", header, recorder.Code, want)
		}
	}
}
