package crdcached_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
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

var (
	// moments are what depends on when something was asked.
	moments = regexp.MustCompile(`"(\d+[ydhms])+"`)
	// addresses are where a server can be reached, which discovery tells.
	addresses = regexp.MustCompile(`"serverAddress":"[^"]*"`)
)

// comparable leaves out what two servers cannot have in common: how far they are, where they are, and the time of day.
func (a answer) comparable() any {
	body := addresses.ReplaceAllString(moments.ReplaceAllString(a.body, `"AGE"`), `"serverAddress":"HERE"`)
	var content map[string]any
	if json.Unmarshal([]byte(body), &content) != nil {
		return body
	}
	if metadata, ok := content["metadata"].(map[string]any); ok && (content["items"] != nil || content["kind"] == "Table") {
		metadata["resourceVersion"] = "N"
		if text, _ := metadata["continue"].(string); text != "" {
			metadata["continue"] = "TOKEN"
		}
	}
	return content
}
