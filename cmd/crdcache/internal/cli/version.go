package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

type versionInfo struct {
	// Version is the module version, or "(devel)" for a local build.
	Version  string        `json:"version"`
	Revision string        `json:"revision,omitempty"`
	Modified bool          `json:"modified,omitempty"`
	Go       string        `json:"go"`
	Platform string        `json:"platform"`
	ClientGo string        `json:"clientGo,omitempty"`
	Server   *version.Info `json:"server,omitempty"`
}

type versionVerb struct {
	streams genericiooptions.IOStreams
	flags   session.ServerFlags
	live    bool
	format  string
	target  *session.Target // nil without --live
}

func newVersion(streams genericiooptions.IOStreams) *cobra.Command {
	o := &versionVerb{streams: streams}
	cmd := &cobra.Command{
		Use:               "version [flags]",
		Short:             "Print the version of crdcache, and with --live of the server",
		Long:              "Print the versions of crdcache, Go and client-go, and with --live of the server.",
		Args:              session.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              session.RunE(o.complete, o.run),
	}
	o.flags.Add(cmd)
	cmd.Flags().BoolVar(&o.live, "live", false, "Also print the version of the server.")
	session.AddOutput(cmd, &o.format, session.FormatText, session.FormatJSON, session.FormatYAML)
	return cmd
}

func (o *versionVerb) complete(cmd *cobra.Command, _ []string) (err error) {
	if cmd.Flags().Changed("from") {
		return session.Usagef("--from has no effect: files have no server version")
	}
	if !o.live {
		return o.flags.RejectSourceFlags("without --live")
	}
	o.target, err = o.flags.Target(cmd.Context(), o.streams)
	return err
}

func (o *versionVerb) run(ctx context.Context) (err error) {
	info := buildInfo()
	if o.live {
		if info.Server, err = serverVersion(ctx, o.target); err != nil {
			return err
		}
	}
	if o.format != session.FormatText {
		return session.WriteStructured(o.streams.Out, o.format, info)
	}
	text := fmt.Sprintf("crdcache: %s (%s, %s, client-go %s)\n", info.Version, info.Go, info.Platform, info.ClientGo)
	if info.Server != nil {
		text += fmt.Sprintf("server: %s (%s)\n", info.Server.GitVersion, info.Server.Platform)
	}
	_, err = io.WriteString(o.streams.Out, text)
	return err
}

// buildInfo reads the build information of the binary.
func buildInfo() versionInfo {
	info := versionInfo{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" +
		runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	if build.Main.Version != "" {
		info.Version = build.Main.Version
	}
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.Revision = setting.Value
		case "vcs.modified":
			info.Modified = setting.Value == "true"
		}
	}
	for _, dependency := range build.Deps {
		if dependency.Path == "k8s.io/client-go" {
			info.ClientGo = dependency.Version
		}
	}
	return info
}

func serverVersion(ctx context.Context, target *session.Target) (*version.Info, error) {
	ctx, cancel := target.WithTimeout(ctx)
	defer cancel()
	client, err := target.PlainClient()
	if err != nil {
		return nil, err
	}
	body, err := client.Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return nil, target.Explain(ctx, err)
	}
	info := &version.Info{}
	if err := json.Unmarshal(body, info); err != nil {
		return nil, fmt.Errorf("decode the server's version: %w", err)
	}
	return info, nil
}
