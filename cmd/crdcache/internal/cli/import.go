package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	yaml "go.yaml.in/yaml/v3"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/indexers"
)

func newImport(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "import",
		SuggestFor: []string{"migrate"},
		Short:      "Convert the configs of other programs",
		Long:       "Convert the config of another program to an index config, and print it.",
		Args:       noArgs,
		RunE:       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	o := &importVerb{IOStreams: streams}
	cmd.AddCommand(&cobra.Command{
		Use:   "kube-state-metrics FILE",
		Short: "Convert a CustomResourceState config to an index config",
		Long: "Convert the CustomResourceStateMetrics config of kube-state-metrics to an index\n" +
			"config with the same metrics, and print it. FILE is - for stdin. It can also be\n" +
			"a ConfigMap or Helm values with the config.\n\n" +
			"Parts without a counterpart are errors, and parts that kube-state-metrics\n" +
			"ignores are warnings, with their line and column.",
		Example: "  crdcache import kube-state-metrics config.yaml > metrics.yaml\n" +
			"  crdcache serve --config metrics.yaml --metrics-address 127.0.0.1:9090",
		Args: session.ExactlyOne("file", "config.yaml"),
		RunE: runE(o),
	})
	return cmd
}

type importVerb struct {
	genericiooptions.IOStreams
	file string
}

func (o *importVerb) complete(_ *cobra.Command, args []string) error {
	o.file = args[0]
	return nil
}

func (o *importVerb) run(context.Context) error {
	source, err := o.read()
	if err != nil {
		return err
	}
	converter := &stateMetricsConverter{file: source.Name, lines: bytes.Split(source.Data, []byte("\n"))}
	config := converter.convert(source.Data)
	slices.SortStableFunc(converter.warnings, byPosition)
	slices.SortStableFunc(converter.problems, byPosition)
	for _, w := range converter.warnings {
		fmt.Fprintf(o.ErrOut, "warning: %s\n", w.Text())
	}
	if len(converter.problems) > 0 {
		return &indexers.ConfigError{Diagnostics: converter.problems}
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("write the config: %w", err)
	}
	if _, err := indexers.Parse(indexers.Source{Name: "the converted config", Data: text}); err != nil {
		return fmt.Errorf("the metrics of %s cannot be combined in one config:\n%w", o.file, err)
	}
	_, err = o.Out.Write(text)
	return err
}

func (o *importVerb) read() (source indexers.Source, err error) {
	if o.file != "-" {
		return indexers.ReadSource(o.file)
	}
	source.Name = "standard input"
	source.Data, err = io.ReadAll(o.In)
	return source, err
}

func byPosition(a, b indexers.Diagnostic) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}
