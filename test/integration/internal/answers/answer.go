package answers

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// Answer is a response with its complete body.
type Answer struct {
	Code   int
	Header http.Header
	Body   string
}

// Ask sends one request to a server.
func Ask(t testing.TB, config *rest.Config, method, path string, header http.Header) Answer {
	t.Helper()
	answer, err := ask(t.Context(), config, method, path, header)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// ask is Ask without testing.TB, for other goroutines.
func ask(ctx context.Context, config *rest.Config, method, path string, header http.Header) (Answer, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, config.Host+path, nil)
	if err != nil {
		return Answer{}, err
	}
	r.Header = header.Clone()
	response, err := client.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return Answer{}, err
	}
	return Answer{response.StatusCode, response.Header, string(body)}, nil
}

var (
	// agePattern matches ages, which depend on the time of the request.
	agePattern = regexp.MustCompile(`"(\d+[ydhms])+"`)
	// currentVersionPattern matches the server's current version. A real server also counts other writes.
	currentVersionPattern = regexp.MustCompile(`current: \d+`)
	// addresses matches the server addresses in discovery.
	addresses = regexp.MustCompile(`"serverAddress":"[^"]*"`)
)

// Comparable returns a body without versions, addresses and times, which differ between servers.
func Comparable(body string) any {
	body = currentVersionPattern.ReplaceAllString(agePattern.ReplaceAllString(body, `"AGE"`), "current: N")
	body = addresses.ReplaceAllString(body, `"serverAddress":"HERE"`)
	var content any
	if err := json.Unmarshal([]byte(body), &content); err != nil {
		return body
	}
	if object, ok := content.(map[string]any); ok {
		maskVersions(object)
	}
	return content
}

// maskVersions hides the resource version of lists and tables, and continue tokens.
func maskVersions(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	if object["kind"] == "PartialObjectMetadataList" && object["items"] == nil {
		object["items"] = []any{} // null in some answers, which is equivalent
	}
	if metadata == nil || object["items"] == nil && object["kind"] != "Table" {
		return
	}
	metadata["resourceVersion"] = "N"
	if text, _ := metadata["continue"].(string); text != "" {
		metadata["continue"] = "TOKEN"
	}
}

// fromYAML converts an answer to JSON if it is YAML.
func (a Answer) fromYAML() (Answer, error) {
	if a.Header.Get("Content-Type") != "application/yaml" {
		return a, nil
	}
	data, err := yaml.YAMLToJSON([]byte(a.Body))
	a.Body = string(data)
	return a, err
}

// Events decodes the lines of a watch. It omits the final bookmark, which is optional.
func Events(t testing.TB, body string) []any {
	t.Helper()
	var events []any
	for line := range strings.Lines(body) {
		event, ok := Comparable(line).(map[string]any)
		if !ok {
			t.Errorf("no event: %s", line)
			continue
		}
		object := event["object"].(map[string]any)
		if event["type"] == "BOOKMARK" {
			if !strings.Contains(line, "initial-events-end") {
				continue
			}
			// A table has the bookmark in its only row.
			if rows, ok := object["rows"].([]any); ok {
				object["metadata"].(map[string]any)["resourceVersion"] = "N"
				object = rows[0].(map[string]any)["object"].(map[string]any)
			}
			object["metadata"].(map[string]any)["resourceVersion"] = "N"
		}
		events = append(events, event)
	}
	return events
}
