package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

// TestHostileFilesOnTerminal checks that files, definitions and configs cannot control the terminal.
func TestHostileFilesOnTerminal(t *testing.T) {
	for name, object := range hostileObjects() {
		file := writeTempFile(t, "a.json", object)
		for _, args := range [][]string{
			{"eval", ".spec", "-f", file}, {"eval", ".metadata.none.x", "-f", file}, {"validate",
				file}, {"validate", file, "--crds", file},
			{"suggest", "gizmos", "--crds",
				writeTempFile(t, "b.json", strings.ReplaceAll(object, `"Gizmo"`, `"CustomResourceDefinition"`))},
		} {
			t.Run(name+"/"+args[0], func(t *testing.T) {
				if _, shown := runOnTerminal(t, args...); shown == "" {
					t.Errorf("%q: stderr is empty", args)
				}
			})
		}
	}
}

// TestHostileWatchOnTerminal checks that watched objects cannot control the terminal.
func TestHostileWatchOnTerminal(t *testing.T) {
	url := newHostileServer(t, true, hostileObjects()["text"])
	t.Setenv("KUBECONFIG", "/none")
	for _, format := range []string{"table", "name", "jsonl"} {
		terminal := newTerminal(t, 40)
		ctx, cancel := context.WithCancel(t.Context())
		code := make(chan int)
		go func() { // ended by cancel
			code <- cli.Main(ctx, []string{"crdcache", "watch", "gizmos", "-A", "-o", format, "-s", url}, nil,
				terminal.File, terminal.File)
		}()
		if err := awaitOutput(t, terminal, func(output string) bool {
			return strings.Contains(output, "title") &&
				strings.HasSuffix(output, "\n")
		}); err != nil {
			t.Error(err)
		}
		cancel()
		got := <-code
		output := terminal.Close()
		if _, err := renderScreen(output, 40); err != nil || got != cli.ExitInterrupted {
			t.Errorf("%s: exit code %d, want %d; the screen: %v", format, got, cli.ExitInterrupted, err)
		}
	}
}
