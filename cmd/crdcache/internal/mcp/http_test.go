package mcp_test

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestHTTP verifies that a client with the token gets answers over HTTP, and that other requests are refused.
func TestHTTP(t *testing.T) {
	tokenFile := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(tokenFile, []byte("secret\n"), 0o600))
	command := program("--from", demo+"crds", "--from", demo+"objects", "--listen", "127.0.0.1:0", "--token-file", tokenFile)
	stderr, err := command.StderrPipe()
	if err == nil {
		err = command.Start()
	}
	must(t, err)
	t.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() })
	line, err := bufio.NewReader(stderr).ReadString('\n')
	_, address, ok := strings.Cut(strings.TrimSpace(line), "answering at ")
	if !ok {
		t.Fatalf("stderr has %q, %v", line, err)
	}
	client := &http.Client{Transport: withHeaders{"Authorization": "Bearer secret"}}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: address, HTTPClient: client}, nil)
	must(t, err)
	defer session.Close()
	if _, text := ask(t, session, "aggregate", `{"type":"workloads"}`); !strings.Contains(text, `"rows":[["18"]]`) {
		t.Errorf("the answer is %s", text)
	}
	for name, headers := range map[string]withHeaders{"token": {"Authorization": "Bearer other"}, "none": {},
		"origin": {"Authorization": "Bearer secret", "Sec-Fetch-Site": "cross-site"},
		"host":   {"Authorization": "Bearer secret", "Host": "example.com"}} {
		client.Transport = headers
		response, err := client.Post(address, "application/json", strings.NewReader("{}"))
		must(t, err)
		response.Body.Close()
		if code := response.StatusCode; code != http.StatusUnauthorized && code != http.StatusForbidden {
			t.Errorf("%s: status %d", name, code)
		}
	}
}

// withHeaders is a transport that sets headers.
type withHeaders map[string]string

func (h withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	if h["Host"] != "" {
		r.Host = h["Host"]
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestOneMeaning verifies that the selectors of the config hold in the tools that read objects.
func TestOneMeaning(t *testing.T) {
	config := filepath.Join(t.TempDir(), "c.yaml")
	must(t, os.WriteFile(config, []byte("apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: a}\n"+
		"spec: {resources: [{name: workloads, match: {group: demo.crdcache.dev, resource: workloads},\n"+
		"  namespaces: {include: [edge]}, selectors: {fields: metadata.name!=proxy}}]}\n"), 0o600))
	session := connect(t, "--from", demo+"crds", "--from", demo+"objects", "--config", config)
	for _, tt := range []struct{ tool, arguments, want string }{
		{"query", `{"type":"workloads"}`, `"shown":"2 of 2"`},
		{"aggregate", `{"type":"workloads"}`, `"rows":[["2"]]`},
		{"get", `{"type":"workload","namespace":"edge","name":"dns","paths":[".spec.image"]}`, `"data":{".spec.image":`},
		{"get", `{"type":"workload","namespace":"edge","name":"proxy"}`, "among the objects that the config selects"},
		{"get", `{"type":"workload","namespace":"media","name":"search"}`, "they do not select the namespace media"},
		{"related", `{"type":"workload","namespace":"edge","name":"dns","maxBytes":1024}`, `"trees":[{`},
		{"related", `{"type":"workload","namespace":"edge","name":"proxy"}`, "among the objects that the config selects"},
		{"changes", `{"types":["workloads"]}`, "cannot keep a history: a selector"},
	} {
		if _, text := ask(t, session, tt.tool, tt.arguments); !strings.Contains(text, tt.want) {
			t.Errorf("%s %s answered %s, want %s", tt.tool, tt.arguments, text, tt.want)
		}
	}
}
