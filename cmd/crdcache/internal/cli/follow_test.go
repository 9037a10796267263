package cli_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestFollowInterrupted checks that an interrupt ends following commands in every phase, with one message.
func TestFollowInterrupted(t *testing.T) {
	for name, path := range map[string]string{"while discovering": "/apis", "while syncing": gizmosPath} {
		for _, args := range [][]string{{"watch"}, {"dump", "-w"}} {
			t.Run(args[0]+" "+name, func(t *testing.T) {
				server := newIndexedServer(t)
				server.AddFaults(apitest.Fault{Path: path})
				ctx, cancel := context.WithCancel(t.Context())
				var out, errOut bytes.Buffer
				code := make(chan int)
				go func() { // ended by cancel
					code <- cli.Main(ctx, append(append([]string{"crdcache"}, args...), "gizmos.example.com",
						"-A", "-s", server.URL), nil, &out, &errOut)
				}()
				server.AwaitRequest(t, path)
				cancel()
				if got := <-code; got != exit.Interrupted || out.String() != "" ||
					errOut.String() != "error: interrupted\n" {
					t.Errorf("exit code %d, stdout %q, stderr %q", got, out.String(), errOut.String())
				}
			})
		}
	}
}
