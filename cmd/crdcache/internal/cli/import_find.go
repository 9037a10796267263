package cli

import (
	"bytes"
	"errors"
	"io"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// maxTextDepth is the number of YAML texts in YAML texts that are searched: Helm values in a ConfigMap.
const maxTextDepth = 2

// stateMetricsFinder collects the configs in a file.
type stateMetricsFinder struct {
	lines []string
	found []*yaml.Node
}

// findStateMetrics returns the configs in a file: documents, and maps and texts in documents, such as Helm
// values and the data of a ConfigMap. The positions of nodes are those in the file.
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
	if kind != nil && kind.Value == "CustomResourceStateMetrics" {
		return true
	}
	for _, r := range resources.Content {
		if valueOf(r, "groupVersionKind") != nil {
			return true
		}
	}
	return false
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

// moveInto converts the positions in a text to those in the file. A block has the lines of the text, with an
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
