package cli

import yaml "go.yaml.in/yaml/v3"

// importedConfig is the part of an index config that an import writes.
type importedConfig struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   map[string]string `yaml:"metadata,flow"`
	Spec       struct {
		Resources []importedResource `yaml:"resources"`
	} `yaml:"spec"`
}

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
	Name       string         `yaml:"name,omitempty"`
	Path       string         `yaml:"path,omitempty"`
	Paths      []string       `yaml:"paths,omitempty"`
	Value      *string        `yaml:"value,omitempty"`
	ElementKey bool           `yaml:"elementKey,omitempty"`
	Regex      *importedRegex `yaml:"regex,omitempty"`
	Type       string         `yaml:"type,omitempty"`
	Format     string         `yaml:"format,omitempty"`
	Default    *string        `yaml:"default,omitempty"`
	Values     []string       `yaml:"values,omitempty"`
}

type importedRegex struct {
	Match string `yaml:"match"`
}

// MarshalYAML writes the value on one line.
func (v importedValue) MarshalYAML() (any, error) {
	type plain importedValue
	n := &yaml.Node{}
	err := n.Encode(plain(v))
	n.Style = yaml.FlowStyle
	return n, err
}
