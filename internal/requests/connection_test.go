package requests

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestUpdateBeforeFirstResponse verifies that a list fails if Update replaces the connection before the first
// response: the watch after the list would use the new cluster.
func TestUpdateBeforeFirstResponse(t *testing.T) {
	requestArrived, sendResponse := make(chan struct{}, 2), make(chan struct{})
	earlierServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requestArrived <- struct{}{}
		<-sendResponse
		_, _ = io.WriteString(w, "earlier")
	}))
	defer earlierServer.Close()
	laterServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "later")
	}))
	defer laterServer.Close()
	connection, err := NewConnection(&rest.Config{Host: earlierServer.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() { // ended by sendResponse
		_, err := getPods(connection)
		failed <- err
	}()
	<-requestArrived
	err = connection.Update(&rest.Config{Host: laterServer.URL})
	close(sendResponse)
	if refused := <-failed; err != nil || !errors.Is(refused, errReplaced) {
		t.Errorf("Update() = %v, the request in progress ended with %v; want %v", err, refused, errReplaced)
	}
	if text, err := getPods(connection); text != "later" || err != nil {
		t.Errorf("the next request got %q, %v; want the response of the later server", text, err)
	}
}

func getPods(connection *Connection) (string, error) {
	client := &http.Client{Transport: connection}
	response, err := client.Get(connection.Config().Host + "/api/v1/pods")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// TestUpdateAfterErrors verifies that a cluster which has only sent errors, such as 401 for expired
// credentials, can be replaced by any other one. After a success, another address is refused, because
// kube-system cannot be read, and checkpoints keep the earlier one.
func TestUpdateAfterErrors(t *testing.T) {
	serve := func(code int) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/kube-system") {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, r.Host)
		}))
		t.Cleanup(server.Close)
		return server
	}
	for _, code := range []int{http.StatusOK, http.StatusUnauthorized, http.StatusForbidden,
		http.StatusBadGateway} {
		earlier, later := serve(code), serve(http.StatusOK)
		connection, err := NewConnection(&rest.Config{Host: earlier.URL}, nil)
		if err != nil {
			t.Fatal(err)
		}
		client, err := NewClient(connection.Config(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, first := getPods(connection)
		updated := connection.Update(&rest.Config{Host: later.URL})
		text, err := getPods(connection)
		if refused := err != nil; first != nil || updated != nil || refused != (code == http.StatusOK) ||
			refused == (text == later.Listener.Addr().String()) ||
			strings.HasPrefix(client.Endpoint(), earlier.URL) != refused {
			t.Errorf("after %d: the next request got %q, %v, and the endpoint is %s", code, text, err,
				client.Endpoint())
		}
	}
}
