package crdcached_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// answer is a response whose body has been read.
type answer struct {
	code   int
	header http.Header
	body   string
}

// ask sends one request.
func ask(t *testing.T, config *rest.Config, method, path string, header ...string) answer {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}
