// Package imports has the command import, which converts the configs of other programs.
package imports

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	yaml "go.yaml.in/yaml/v3"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/indexers"
)

func New(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "import",
		SuggestFor: []string{"migrate"},
		Short:      "Convert the configs of other programs",
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "kube-state-metrics FILE",
		Short: "Convert a CustomResourceState config to an index config",
		Args:  session.ExactlyOne("file", "config.yaml"),
		RunE: func(_ *cobra.Command, args []string) error {
			return convertStateMetrics(streams, args[0])
		},
	})
	return cmd
}

func convertStateMetrics(streams genericiooptions.IOStreams, file string) error {
	source, err := indexers.Source{Name: "standard input"}, error(nil)
	if file == "-" {
		source.Data, err = io.ReadAll(streams.In)
	} else {
		source, err = indexers.ReadSource(file)
	}
	if err != nil {
		return err
	}
	converter := &stateMetricsConverter{file: source.Name, lines: bytes.Split(source.Data, []byte("\n"))}
	resources := converter.convert(source.Data)
	slices.SortStableFunc(converter.warnings, byPosition)
	slices.SortStableFunc(converter.problems, byPosition)
	for _, w := range converter.warnings {
		fmt.Fprintf(streams.ErrOut, "warning: %s\n", w.Text())
	}
	if len(converter.problems) > 0 {
		return &indexers.ConfigError{Diagnostics: converter.problems}
	}
	text, err := session.MarshalConfig("kube-state-metrics", resources)
	if err != nil {
		return err
	}
	if _, err := indexers.Parse(indexers.Source{Name: "the converted config", Data: text}); err != nil {
		return fmt.Errorf("the metrics of %s cannot be combined in one config:\n%w", file, err)
	}
	_, err = streams.Out.Write(text)
	return err
}

func byPosition(a, b indexers.Diagnostic) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// maxTextDepth is the number of YAML texts in YAML texts that are searched: Helm values in a ConfigMap.
const maxTextDepth = 2

// stateMetricsFinder collects the configs in a file.
type stateMetricsFinder struct {
	lines []string
	found []*yaml.Node
}

// findStateMetrics returns the configs in a file: documents, and maps and texts in documents, such as Helm
// values and the data of a ConfigMap. Nodes have their positions in the file.
func findStateMetrics(data []byte) ([]*yaml.Node, error) {
	finder := stateMetricsFinder{lines: strings.Split(string(data), "\n")}
	stream := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var document yaml.Node
		if err := stream.Decode(&document); errors.Is(err, io.EOF) {
			return finder.found, nil
		} else if err != nil {
			return nil, err
		}
		finder.add(&document, maxTextDepth)
	}
}

func (f *stateMetricsFinder) add(n *yaml.Node, textDepth int) {
	switch {
	case isStateMetrics(n):
		f.found = append(f.found, n)
		return
	case n.Kind == yaml.ScalarNode && textDepth > 0 && strings.Contains(n.Value, "groupVersionKind"):
		inner := &yaml.Node{}
		if yaml.Unmarshal([]byte(n.Value), inner) == nil {
			f.moveInto(inner, n)
			f.add(inner, textDepth-1)
		}
		return
	}
	for _, child := range n.Content {
		f.add(child, textDepth)
	}
}

// isStateMetrics reports whether a node has a list spec.resources of which an element has groupVersionKind.
func isStateMetrics(n *yaml.Node) bool {
	resources := valueOf(valueOf(n, "spec"), "resources")
	if resources == nil || resources.Kind != yaml.SequenceNode {
		return false
	}
	kind := valueOf(n, "kind")
	hasKind := func(r *yaml.Node) bool { return valueOf(r, "groupVersionKind") != nil }
	return kind != nil && kind.Value == "CustomResourceStateMetrics" ||
		slices.ContainsFunc(resources.Content, hasKind)
}

func valueOf(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for k := 0; k+1 < len(n.Content); k += 2 {
		if n.Content[k].Value == name {
			return n.Content[k+1]
		}
	}
	return nil
}

// moveInto converts the positions in a text to the file's. A block has the lines of the text, with an
// indentation; nodes in other texts have the position of the text.
func (f *stateMetricsFinder) moveInto(n, text *yaml.Node) {
	if text.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 && text.Line < len(f.lines) {
		line := f.lines[text.Line] // the first one of the block
		n.Line += text.Line
		n.Column += len(line) - len(strings.TrimLeft(line, " "))
	} else {
		n.Line, n.Column = text.Line, text.Column
	}
	for _, child := range n.Content {
		f.moveInto(child, text)
	}
}

// importedResource is the part of an index config that an import writes.
type importedResource struct {
	Name     string              `yaml:"name"`
	Match    map[string]string   `yaml:"match,flow"`
	Optional bool                `yaml:"optional"` // kube-state-metrics waits for types
	Keep     map[string][]string `yaml:"keep,flow"`
	Metrics  []importedMetric    `yaml:"metrics,omitempty"`
}

type importedMetric struct {
	Name   string          `yaml:"name"`
	Help   string          `yaml:"help"`
	When   string          `yaml:"when,omitempty"`
	Each   string          `yaml:"each,omitempty"`
	Labels []importedValue `yaml:"labels,omitempty"`
	Value  *importedValue  `yaml:"value,omitempty"`
	States *importedValue  `yaml:"states,omitempty"`
	Limit  int             `yaml:"limit"` // kube-state-metrics has no limit
}

// importedValue is a label, a value or a state set.
type importedValue struct {
	Name       string            `yaml:"name,omitempty"`
	Path       string            `yaml:"path,omitempty"`
	Paths      []string          `yaml:"paths,omitempty"`
	Value      *string           `yaml:"value,omitempty"`
	ElementKey bool              `yaml:"elementKey,omitempty"`
	Regex      map[string]string `yaml:"regex,omitempty"`
	Type       string            `yaml:"type,omitempty"`
	Format     string            `yaml:"format,omitempty"`
	Default    *string           `yaml:"default,omitempty"`
	Values     []string          `yaml:"values,omitempty"`
}

// MarshalYAML writes the value on one line.
func (v importedValue) MarshalYAML() (any, error) {
	type plain importedValue
	n := &yaml.Node{}
	err := n.Encode(plain(v))
	n.Style = yaml.FlowStyle
	return n, err
}
