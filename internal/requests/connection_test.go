package requests

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

// TestUpdateBeforeFirstResponse verifies that the earlier cluster's response to a list is refused, because
// the watch that follows would be one of the other cluster.
func TestUpdateBeforeFirstResponse(t *testing.T) {
	arrived, proceed := make(chan struct{}, 2), make(chan struct{})
	earlier := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-proceed
		_, _ = io.WriteString(w, "earlier")
	}))
	defer earlier.Close()
	later := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "later")
	}))
	defer later.Close()
	connection, err := NewConnection(&rest.Config{Host: earlier.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: connection}
	get := func() (string, error) {
		response, err := client.Get(connection.Config().Host + "/api/v1/pods")
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return string(text), err
	}
	failed := make(chan error)
	go func() { // ended by proceed
		_, err := get()
		failed <- err
	}()
	<-arrived
	err = connection.Update(&rest.Config{Host: later.URL})
	close(proceed)
	if refused := <-failed; err != nil || !errors.Is(refused, errReplaced) {
		t.Errorf("Update() = %v, the request in progress ended with %v; want %v", err, refused, errReplaced)
	}
	if text, err := get(); text != "later" || err != nil {
		t.Errorf("the next request got %q, %v; want the response of the later server", text, err)
	}
}
