// Package mcp implements the command that answers assistants by the Model Context Protocol. It runs the verbs
// that read, and turns their output into answers that say how complete they are and fit a budget of bytes.
package mcp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/internal/display"
)

// Run runs a command line without the program's name, and returns the exit code.
type Run func(ctx context.Context, args []string, out, errOut io.Writer) int

type verb struct {
	streams     genericiooptions.IOStreams
	runVerb     Run
	version     string
	flags       session.ReadFlags
	logFile     string
	showSecrets bool

	config   *session.Config
	redactor *display.Redactor
	given    map[string][]string // values of the flags for the verbs
	logger   *slog.Logger
}

// New returns the command mcp. version is the version of the program, and run runs its other verbs.
func New(streams genericiooptions.IOStreams, version string, run Run) *cobra.Command {
	o := &verb{streams: streams, version: version, runVerb: run, given: map[string][]string{}}
	cmd := &cobra.Command{Use: "mcp [flags]", Short: "Answer assistants by the Model Context Protocol",
		Args: session.NoArgs, RunE: session.RunE(o.complete, o.run)}
	o.flags.Add(cmd, true)
	cmd.ValidArgsFunction = nil
	o.flags.AddContexts(cmd)
	o.flags.AddCache(cmd)
	set := cmd.Flags()
	set.StringVar(&o.logFile, "log-file", "", "Append a line of JSON for each call to this file.")
	set.BoolVar(&o.showSecrets, "show-secrets", false, "Send the values of Secrets.")
	return cmd
}

func (o *verb) complete(cmd *cobra.Command, _ []string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		o.given[f.Name] = []string{f.Value.String()}
		if list, err := cmd.Flags().GetStringArray(f.Name); err == nil {
			o.given[f.Name] = list
		}
		if list, err := cmd.Flags().GetStringSlice(f.Name); err == nil {
			o.given[f.Name] = list
		}
	})
	if slices.Contains(o.given["from"], "-") {
		return session.Usagef("--from - cannot be used here: each call reads the files")
	}
	o.redactor = display.NewRedactor(o.showSecrets)
	if o.config, err = o.flags.Load(o.streams.ErrOut); err == nil {
		_, err = o.flags.Targets(cmd.Context(), o.streams)
	}
	return err
}

// run serves until the client disconnects.
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
	return o.newServer().Run(ctx, &sdk.StdioTransport{})
}
