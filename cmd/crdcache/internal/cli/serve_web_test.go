//go:build unix

package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

const webConfig = gizmoIndexes + `    references:
    - {name: zone, to: {group: example.com, kind: Zone, namePath: .spec.zone}}
`

// browser is an HTTP client that has logged in to a page with its link.
type browser struct {
	t       *testing.T
	baseURL *url.URL
	client  *http.Client
}

// loginLink matches the address of a page in serve's output.
var loginLink = regexp.MustCompile(`http://127\.0\.0\.1:\d+/login\?token=\S+`)

func newBrowser(t *testing.T, output string) *browser {
	t.Helper()
	at, err := url.Parse(loginLink.FindString(output))
	if err != nil || at.Host == "" {
		t.Fatalf("no link in %q", output)
	}
	jar, err := cookiejar.New(nil)
	must(t, err)
	b := &browser{t, at, &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}}
	if page := b.get(at.RequestURI(), http.StatusOK); !strings.Contains(page, "<html") {
		t.Errorf("the link returned %s, want the page", page)
	}
	return b
}

func (b *browser) open(path string) *http.Response {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b.t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.baseURL.Host+path, nil)
	must(b.t, err)
	response, err := b.client.Do(request)
	must(b.t, err)
	b.t.Cleanup(func() { response.Body.Close() })
	return response
}

func (b *browser) get(path string, status int) string {
	b.t.Helper()
	response := b.open(path)
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status {
		b.t.Errorf("%s: %v, %d, want %d: %s", path, err, response.StatusCode, status, text)
	}
	return string(text)
}

// awaitEvent reads a stream until an event matches.
func awaitEvent(t *testing.T, stream *bufio.Scanner, name string, matches func(data string) bool) {
	t.Helper()
	event := ""
	for stream.Scan() {
		if text, ok := strings.CutPrefix(stream.Text(), "event: "); ok {
			event = text
		} else if data, ok := strings.CutPrefix(stream.Text(), "data: "); ok && event == name && matches(data) {
			return
		}
	}
	t.Fatalf("the stream ended before event %s: %v", name, stream.Err())
}

// TestServeWeb checks types, references and changes on the page, and who can open it.
func TestServeWeb(t *testing.T) {
	shortRuntimeDir(t)
	server := newIndexedServer(t)
	server.Create(t, zones, newObject("Zone", "", "north", nil))
	server.Create(t, gizmos, newObject("Gizmo", "web", "e", map[string]any{"color": "green",
		"zone": "north"}),
		newObject("Gizmo", "web", "f", map[string]any{"zone": "south"}))
	stderr, stderrWriter := io.Pipe()
	t.Cleanup(func() { stderr.Close() })
	stopped := startServe(t, stderrWriter, "gizmos", "zones", "--web", "--config", writeTempFile(t, "c.yaml", webConfig),
		"-s", server.URL)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && loginLink.FindString(lines.Text()) == "" {
	}
	b := newBrowser(t, lines.Text())
	go func() { _, _ = io.Copy(io.Discard, stderr) }() // ends with Close
	awaitServer(t, server.URL, 2)

	stream := bufio.NewScanner(b.open("/api/stream?ask=").Body)
	stream.Buffer(nil, 1<<20)
	awaitEvent(t, stream, "types", func(data string) bool {
		return strings.Contains(data, `"gizmos.example.com/v1"`) &&
			strings.Contains(data, `"title":"`+server.URL+`"`)
	})
	server.Update(t, gizmos, newObject("Gizmo", "web", "b", map[string]any{"color": "violet",
		"size": int64(9)}))
	awaitEvent(t, stream, "changes", func(data string) bool { return strings.Contains(data, `"violet"`) })

	const gizmo = "type=gizmos.example.com%2Fv1"
	if text := b.get("/api/related?key=web%2Fe&"+gizmo, http.StatusOK); !strings.Contains(text,
		`"key":"north","name":"zone","state":"Resolved"`) {
		t.Errorf("the references of e = %s, want north", text)
	}

	stranger := &browser{t, b.baseURL, &http.Client{}}
	stranger.get(b.baseURL.RequestURI(), http.StatusUnauthorized)
	stranger.get("/", http.StatusUnauthorized)
	elsewhere, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.baseURL.Host+"/", nil)
	must(t, err)
	elsewhere.Host = "evil.example"
	if response, err := b.client.Do(elsewhere); err != nil ||
		response.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a request for another host = %v, %v, want 421", response, err)
	} else {
		response.Body.Close()
	}

	first, second := crdcache(t, "serve", "status", "-s", server.URL), crdcache(t, "serve", "status",
		"-s", server.URL)
	if loginLink.FindString(first.out) == loginLink.FindString(second.out) {
		t.Errorf("two calls of serve status printed the same link: %q, %q", first.out, second.out)
	}
	newBrowser(t, second.out)
	newBrowser(t, first.out)

	if r := crdcache(t, "serve", "stop", "-s", server.URL); r.code != cli.ExitOK {
		t.Errorf("serve stop: %+v, want exit code %d", r, cli.ExitOK)
	}
	if code := <-stopped; code != cli.ExitOK {
		t.Errorf("the stopped server ended with exit code %d, want 0", code)
	}
	if response, err := b.client.Get("http://" + b.baseURL.Host + "/"); err == nil {
		response.Body.Close()
		t.Error("the page responds after the server has ended")
	}
}

// TestServeWebIsLocal verifies that serve rejects page addresses that other machines could reach.
func TestServeWebIsLocal(t *testing.T) {
	shortRuntimeDir(t)
	for _, address := range []string{
		"0.0.0.0:0", ":0", ":8080", "10.0.0.1:80", "[::]:80", "127.0.0.1", "127.0.0.1:99999",
		"example.com:80", "[::1%lo]:80", "", "[::ffff:10.0.0.1]:80",
	} {
		r := crdcache(t, "serve", "gizmos", "--web", "--web-address", address, "-s", "http://127.0.0.1:1")
		if r.code != cli.ExitUsage || !strings.Contains(r.errOut, "use a loopback address and a port") {
			t.Errorf("serve with the page address %q: %+v, want a usage error", address, r)
		}
	}
	for _, flag := range []string{"--web-address=127.0.0.1:0", "--show-secrets"} {
		if r := crdcache(t, "serve", "gizmos", flag, "-s", "http://127.0.0.1:1"); r.code != cli.ExitUsage ||
			!strings.Contains(r.errOut, "has no effect without --web") {
			t.Errorf("serve %s: %+v, want a usage error", flag, r)
		}
	}
}

// read decodes the response to a GET.
func (b *browser) read(path string, into any) {
	b.t.Helper()
	must(b.t, json.Unmarshal([]byte(b.get(path, http.StatusOK)), into))
}
