// Package mcp implements the command that answers assistants by the Model Context Protocol. It runs the verbs
// that read, and turns their output into answers that say how complete they are and fit a budget of bytes.
package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/serve"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/internal/display"
	"github.com/crdcache/crdcache/internal/naming"
)

// Run runs a command line without the program's name, and returns the exit code.
type Run func(ctx context.Context, args []string, out, errOut io.Writer) int

type verb struct {
	streams     genericiooptions.IOStreams
	runVerb     Run
	version     string
	flags       session.ReadFlags
	logFile     string
	address     string
	tokenFile   string
	showSecrets bool
	budget      string

	redactor   *display.Redactor
	session    string   // part of the tokens of changes
	given      []string // the flags for the verbs
	namespace  string   // the only one that is read; empty means all
	readsFiles bool
	shared     *session.Shared // nil if each call reads the types, or asks a cache server
	addrPort   netip.AddrPort  // invalid without --listen
	logger     *slog.Logger
}

// ownFlags are the flags that the verbs do not get.
var ownFlags = []string{"log-file", "show-secrets", "namespace", "all-namespaces", "listen", "token-file", "memory-budget"}

// New returns the command mcp. version is the version of the program, and run runs its other verbs.
func New(streams genericiooptions.IOStreams, version string, run Run) *cobra.Command {
	o := &verb{streams: streams, version: version, runVerb: run}
	cmd := &cobra.Command{Use: "mcp [flags]", Short: "Answer assistants by the Model Context Protocol",
		Args: session.NoArgs, RunE: session.RunE(o.complete, o.run)}
	o.flags.Add(cmd, true)
	cmd.ValidArgsFunction = nil
	o.flags.AddContexts(cmd)
	o.flags.AddCache(cmd)
	set := cmd.Flags()
	set.StringVar(&o.logFile, "log-file", "", "Append a line of JSON for each call to this file.")
	set.StringVar(&o.budget, "memory-budget", "1Gi", "Cache no more types if the caches of a cluster have this size.")
	set.BoolVar(&o.showSecrets, "show-secrets", false, "Send the values of Secrets.")
	set.StringVar(&o.address, "listen", "", "Answer HTTP at this address instead of standard input, as in 127.0.0.1:8080.")
	set.StringVar(&o.tokenFile, "token-file", "", "File with the bearer token for --listen. Default: a new token, which is printed to stderr.")
	return cmd
}

func (o *verb) complete(cmd *cobra.Command, _ []string) (err error) {
	set := cmd.Flags()
	set.Visit(func(f *pflag.Flag) {
		values, err := set.GetStringArray(f.Name)
		if err != nil {
			values, err = set.GetStringSlice(f.Name)
		}
		if err != nil {
			values = []string{f.Value.String()}
		}
		for _, value := range values {
			if !slices.Contains(ownFlags, f.Name) {
				o.given = append(o.given, "--"+f.Name+"="+value)
			}
		}
	})
	o.namespace, o.readsFiles = set.Lookup("namespace").Value.String(), set.Changed("from")
	switch {
	case slices.Contains(o.given, "--from=-"):
		return session.Usagef("--from - cannot be used here: standard input has the questions")
	case o.address == "" && o.tokenFile != "":
		return session.Usagef("--token-file has no effect without --listen")
	case o.address != "":
		if o.addrPort, err = serve.ParseLoopback("listen", o.address, "answers are"); err != nil {
			return err
		}
	}
	budget, err := naming.ParseQuantity(o.budget)
	switch {
	case err != nil || budget.Sign() < 0:
		return session.Usagef("--memory-budget is %q: give a size such as 1Gi", o.budget)
	case !o.flags.SharesCaches() && set.Changed("memory-budget"):
		return session.Usagef("--memory-budget has no effect with --cache")
	case o.flags.SharesCaches():
		o.shared = session.NewShared(cmd.Context(), o.namespace, budget.Value())
	}
	o.session, o.redactor = rand.Text()[:8], display.NewRedactor(o.showSecrets)
	if _, err = o.flags.Load(o.streams.ErrOut); err == nil {
		_, err = o.flags.Targets(o.shared.Context(cmd.Context(), nil), o.streams)
	}
	return err
}

// run serves until the client disconnects, or with --listen until ctx ends.
func (o *verb) run(ctx context.Context) (err error) {
	o.logger = slog.New(slog.DiscardHandler)
	if o.logFile != "" {
		file, err := os.OpenFile(o.logFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("--log-file: %w", err)
		}
		defer file.Close()
		o.logger = slog.New(slog.NewJSONHandler(file, nil))
	}
	server := o.newServer()
	if !o.addrPort.IsValid() {
		return server.Run(ctx, &sdk.StdioTransport{})
	}
	token := rand.Text()
	if o.tokenFile != "" {
		text, err := os.ReadFile(o.tokenFile)
		if token = strings.TrimSpace(string(text)); err != nil || token == "" {
			return fmt.Errorf("--token-file: %w", cmp.Or(err, errors.New("the file is empty")))
		}
	}
	listener, err := net.Listen("tcp", o.addrPort.String())
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	// The handler of the SDK refuses other hosts.
	answers := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{SessionTimeout: time.Hour})
	handler := http.NewCrossOriginProtection().Handler(answers)
	page := &localserver.Page{Listener: listener, Handler: serve.WithToken(token, handler)}
	return localserver.ServePage(ctx, page, nil, func() {
		fmt.Fprintf(o.streams.ErrOut, "answering at http://%s\n", listener.Addr())
		if o.tokenFile == "" {
			fmt.Fprintf(o.streams.ErrOut, "token: %s\n", token)
		}
	})
}
