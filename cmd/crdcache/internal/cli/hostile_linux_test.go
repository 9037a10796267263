package cli_test

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit"
)

// newTerminal returns a terminal that is closed when the test ends.
func newTerminal(t testing.TB, columns int) *testkit.Terminal {
	t.Helper()
	t.Setenv("TERM", "xterm")
	terminal, err := testkit.OpenTerminal(columns)
	must(t, err)
	return terminal
}

// runOnTerminal runs a command line on a terminal and returns the exit code and the output. It fails the test
// if control characters reached the terminal.
func runOnTerminal(t *testing.T, args ...string) (int, string) {
	t.Helper()
	const columns = 40
	terminal := newTerminal(t, columns)
	t.Setenv("KUBECONFIG", "/none")
	code := cli.Main(t.Context(), append([]string{"crdcache"}, args...), strings.NewReader(""),
		terminal.File, terminal.File)
	output := terminal.Close()
	if _, err := renderScreen(output, columns); err != nil {
		t.Errorf("the output of %q: %v", args, err)
	}
	for _, r := range "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029" {
		if strings.ContainsRune(output, r) {
			t.Errorf("%q: the control character %U reached the terminal", args, r)
		}
	}
	return code, output
}

// TestHostileObjectsOnTerminal checks that objects cannot control the terminal in any format.
func TestHostileObjectsOnTerminal(t *testing.T) {
	for name, object := range hostileObjects() {
		urls := []string{newHostileServer(t, true, object)}
		formats := []string{"table", "json", "yaml", "csv"}
		if name == "text" || name == "kind" {
			urls = append(urls, newHostileServer(t, false, object))
			formats = hostileFormats
		}
		for _, url := range urls {
			verbs := [][]string{
				{"query", "gizmos", "-A", "--where", ".metadata", "--keys-only"}, {"query", "gizmos", "-A",
					"--where", ".metadata"},
				{"stats", "gizmos", "-A", "--storage", "compressed"}, {"resources"},
			}
			for _, format := range formats {
				verbs = append(verbs, []string{"dump", "gizmos", "-A", "-o", format})
			}
			for _, args := range verbs {
				t.Run(name+"/"+args[0], func(t *testing.T) {
					code, shown := runOnTerminal(t, append(args, "-s", url)...)
					if code != cli.ExitOK || shown == "" {
						t.Errorf("%q: exit code %d, want %d; the terminal shows %.2000q", args, code,
							cli.ExitOK, shown)
					}
				})
			}
		}
	}
}

// TestUnreadableObjects verifies that undecodable objects are reported with their type on one line.
func TestUnreadableObjects(t *testing.T) {
	for name, object := range invalidObjects() {
		t.Run(name, func(t *testing.T) {
			url := newHostileServer(t, name != "infinite", object)
			// without a timeout: an undecodable answer is final
			code, shown := runOnTerminal(t, "dump", "gizmos", "-A", "--timeout", "0", "-s", url)
			if code != cli.ExitFailed || !strings.HasPrefix(shown, "error: list gizmos.v1.example.com: ") ||
				strings.Count(shown, "\n") != 1 || len(shown) > 3000 {
				t.Errorf("exit code %d, want %d; the terminal shows %.2000q", code, cli.ExitFailed, shown)
			}
		})
	}
}
