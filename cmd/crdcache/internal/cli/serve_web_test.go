//go:build unix

package cli_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
)

var printedLink = regexp.MustCompile(`http://127[.]0[.]0[.]1:\d+/login[?]token=\S+`)

// TestServeWeb opens the printed link, and finds what is kept with the indexes of the config.
func TestServeWeb(t *testing.T) {
	shortRuntimeDir(t)
	server := newShop(t)
	config := write(t, "c.yaml", gizmoIndexes)
	ctx, cancel := context.WithCancel(context.Background())
	told, errOut := io.Pipe()
	done := make(chan struct{})
	go func() { // ended by cancel
		defer close(done)
		defer errOut.Close()
		cli.Main(ctx, []string{"crdcache", "serve", "things", "--web", "--config", config, "-s", server.URL}, strings.NewReader(""), io.Discard, errOut)
	}()
	t.Cleanup(func() { cancel(); <-done })
	link := ""
	lines := bufio.NewScanner(told)
	for link == "" && lines.Scan() {
		link = printedLink.FindString(lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, told) }() // ended with the verb
	if link == "" {
		t.Fatal("no link was printed")
	}
	awaitServer(t, server.URL, 1)

	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(client *http.Client, address string) (int, string) {
		t.Helper()
		response, err := client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	base := link[:strings.Index(link, "/login")]
	if status, body := get(client, link); status != http.StatusOK || !strings.Contains(body, "<title>crdcache</title>") {
		t.Fatalf("the link leads to %d %s", status, body)
	}
	if status, body := get(client, base+"/api/table?type=gizmos.example.com/v1&query=color%3Dred"); status != http.StatusOK || !strings.Contains(body, "Starts with color=red") {
		t.Errorf("a query by an index of the config: %d %s", status, body)
	}
	stranger := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if status, _ := get(stranger, base+"/"); status != http.StatusUnauthorized {
		t.Errorf("another browser: %d, want 401", status)
	}
	if r := crdcache(t, "serve", "things", "--show-secrets", "-s", server.URL); r.code != exit.Usage || !strings.Contains(r.errOut, "without --web") {
		t.Errorf("%+v", r)
	}
}
