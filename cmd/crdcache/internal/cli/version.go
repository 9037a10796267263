package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

type versionInfo struct {
	// Version is the module version, or "(devel)" for a local build.
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	ClientGo string `json:"clientGo,omitempty"`
}

func newVersion(streams genericiooptions.IOStreams) *cobra.Command {
	format := ""
	cmd := &cobra.Command{
		Use:               "version [flags]",
		Short:             "Print the versions of crdcache, Go and client-go",
		Args:              session.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			info := buildInfo()
			if format != session.FormatText {
				return session.WriteStructured(streams.Out, format, info)
			}
			_, err := fmt.Fprintf(streams.Out, "crdcache: %s (%s, %s, client-go %s)\n", info.Version, info.Go, info.Platform,
				info.ClientGo)
			return err
		},
	}
	session.AddOutput(cmd, &format, session.FormatText, session.FormatJSON, session.FormatYAML)
	return cmd
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
