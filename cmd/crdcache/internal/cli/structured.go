package cli

import (
	"encoding/json"

	"sigs.k8s.io/yaml"
)

// structured is a value of the command's own as JSON or YAML; nil where another format is asked for.
func structured(format string, value any) ([]byte, error) {
	switch format {
	case formatJSON:
		text, err := json.MarshalIndent(value, "", "  ")
		return append(text, '\n'), err
	case formatYAML:
		return yaml.Marshal(value)
	}
	return nil, nil
}
