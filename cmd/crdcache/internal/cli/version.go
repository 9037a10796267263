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

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

// versionInfo is the JSON and YAML form.
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

func newVersion(streams genericiooptions.IOStreams) *cobra.Command {
	flags := session.NewServerFlags()
	server, format := false, "text"
	cmd := &cobra.Command{
		Use:               "version [flags]",
		Short:             "Print the version of crdcache, and with --live of the server",
		Long:              "Print the versions of crdcache, Go and client-go, and with --live of the server.",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := print.OneOf("output format", format, []string{"text", "json", "yaml"}); err != nil {
				return err
			}
			if cmd.Flags().Changed("from") {
				return exit.Usagef("--from has no effect: files have no server version")
			}
			if !server {
				if err := flags.RefuseAll("without --live"); err != nil {
					return err
				}
			}
			info := buildInfo()
			if server {
				on, err := flags.Target(cmd.Context(), streams)
				if err != nil {
					return err
				}
				if info.Server, err = serverVersion(cmd.Context(), on); err != nil {
					return err
				}
			}
			return printVersion(streams, info, format)
		},
	}
	flags.Add(cmd.Flags())
	cmd.Flags().BoolVar(&server, "live", false, "Also print the version of the server.")
	cmd.Flags().StringVarP(&format, "output", "o", format, "Output format: text, json or yaml.")
	flags.Complete(cmd)
	print.CompleteWords(cmd, "output", []string{"text", "json", "yaml"})
	return cmd
}

// buildInfo reads the build information of the binary.
func buildInfo() versionInfo {
	info := versionInfo{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" +
		runtime.GOARCH}
	read, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	if read.Main.Version != "" {
		info.Version = read.Main.Version
	}
	for _, setting := range read.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.Revision = setting.Value
		case "vcs.modified":
			info.Modified = setting.Value == "true"
		}
	}
	for _, dependency := range read.Deps {
		if dependency.Path == "k8s.io/client-go" {
			info.ClientGo = dependency.Version
		}
	}
	return info
}

func serverVersion(ctx context.Context, on *session.Target) (*version.Info, error) {
	ctx, cancel := on.Limit(ctx)
	defer cancel()
	client, err := on.PlainClient()
	if err != nil {
		return nil, err
	}
	body, err := client.Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return nil, on.Explain(ctx, err)
	}
	info := &version.Info{}
	if err := json.Unmarshal(body, info); err != nil {
		return nil, fmt.Errorf("decode the server's version: %w", err)
	}
	return info, nil
}

func printVersion(streams genericiooptions.IOStreams, info versionInfo, format string) error {
	if format != formatText {
		return writeStructured(streams.Out, format, info)
	}
	text := fmt.Sprintf("crdcache: %s (%s, %s, client-go %s)\n", info.Version, info.Go,
		info.Platform, info.ClientGo)
	if info.Server != nil {
		text += fmt.Sprintf("server: %s (%s)\n", info.Server.GitVersion, info.Server.Platform)
	}
	_, err := io.WriteString(streams.Out, text)
	return err
}
