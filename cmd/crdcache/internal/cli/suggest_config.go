package cli

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// suggestedConfig is the part of an index config that is proposed, in the order in which a person reads it.
type suggestedConfig struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   map[string]string `yaml:"metadata"`
	Spec       struct {
		Resources []suggestedResource `yaml:"resources"`
	} `yaml:"spec"`
}

type suggestedResource struct {
	Name  string `yaml:"name"`
	Match struct {
		Group    string `yaml:"group"`
		Version  string `yaml:"version"`
		Resource string `yaml:"resource"`
	} `yaml:"match,flow"`
	Indexes []suggestedIndex `yaml:"indexes"`
}

type suggestedIndex struct {
	Name       string `yaml:"name"`
	Path       string `yaml:"path,omitempty"`
	Label      string `yaml:"label,omitempty"`
	Annotation string `yaml:"annotation,omitempty"`
	Type       string `yaml:"type,omitempty"`
	Order      string `yaml:"order,omitempty"`
}

// sortedTypes are the types of indexes for columns of whose values one asks for ranges.
var sortedTypes = map[string]string{"integer": "int", "number": "number", "date": "time"}

// renderConfig gives a config with an index for each field that the CRDs make selectable or show in a column.
func renderConfig(types []servedType) ([]byte, error) {
	c := suggestedConfig{APIVersion: indexers.APIVersion, Kind: indexers.Kind, Metadata: map[string]string{"name": "suggested"}}
	taken := map[string]bool{}
	for _, t := range types {
		r := suggestedResource{Name: uniqueName(t.Names.Plural, taken), Indexes: proposeIndexes(t.Version)}
		r.Match.Group, r.Match.Version, r.Match.Resource = t.Group, t.Version.Name, t.Names.Plural
		c.Spec.Resources = append(c.Spec.Resources, r)
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("writing the config: %w", err)
	}
	return text, nil
}

// proposeIndexes gives the indexes of one version: sorted ones for numbers and times. Columns of names and ages are left out:
// every object has another.
func proposeIndexes(version crd.Version) []suggestedIndex {
	types := map[string]string{} // by path: a selectable field may be a column too
	for _, column := range version.Columns {
		if path, err := jsonpath.Compile(column.JSONPath); err == nil {
			types[path.String()] = sortedTypes[column.Type]
		}
	}
	var all []suggestedIndex
	names, paths := map[string]bool{}, map[string]bool{}
	add := func(name, expr string) {
		path, err := jsonpath.Compile(expr)
		if err != nil || paths[path.String()] || uselessPath(path.String()) {
			return
		}
		paths[path.String()] = true
		if name == "" {
			name = lastKey(path)
		}
		one := suggestedIndex{Name: uniqueName(name, names), Type: types[path.String()]}
		one.read(path)
		if one.Type != "" {
			one.Order = "sorted"
		}
		all = append(all, one)
	}
	for _, field := range version.SelectableFields {
		add("", field)
	}
	for _, column := range version.Columns {
		add(camelCase(column.Name), column.JSONPath)
	}
	if len(all) == 0 {
		all = append(all, suggestedIndex{Name: "label-name", Label: "app.kubernetes.io/name"})
	}
	return all
}

// read has the index take its values from a path, by the name alone where it leads to a label or an annotation, which
// has no other reading.
func (i *suggestedIndex) read(path *jsonpath.Path) {
	keys := keysOf(path)
	switch {
	case len(keys) == 3 && path.Singular() && keys[0] == "metadata" && keys[1] == "labels":
		i.Label = keys[2]
	case len(keys) == 3 && path.Singular() && keys[0] == "metadata" && keys[1] == "annotations":
		i.Annotation = keys[2]
	default:
		i.Path = path.Expr()
	}
}

func uselessPath(path string) bool {
	return slices.Contains([]string{".metadata.name", ".metadata.namespace", ".metadata.uid", ".metadata.creationTimestamp"}, path)
}

// genericKeys are keys that say little by themselves.
var genericKeys = []string{"name", "kind", "group", "type", "key", "value", "id", "namespace", "enabled", "status"}

// lastKey names an index after the last key of its path, with the key before it where that one says little:
// .spec.issuerRef.name becomes issuerRefName.
func lastKey(path *jsonpath.Path) string {
	keys := keysOf(path)
	switch n := len(keys); {
	case n == 0:
		return camelCase("")
	case n > 2 && slices.Contains(genericKeys, keys[n-1]):
		return camelCase(keys[n-2] + " " + keys[n-1])
	default:
		return camelCase(keys[n-1])
	}
}

// keysOf are the names in a path.
func keysOf(path *jsonpath.Path) []string {
	var keys []string
	for _, step := range path.Steps() {
		for _, selector := range step.Selectors {
			if selector.Kind == jsonpath.SelectName {
				keys = append(keys, selector.Name)
			}
		}
	}
	return keys
}

// camelCase makes a name of the words of a title: "Ready Since" becomes readySince, "TLS" tls.
func camelCase(title string) string {
	words := strings.FieldsFunc(title, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 {
		return "value"
	}
	for i, word := range words {
		if strings.ToUpper(word) == word {
			word = strings.ToLower(word)
		}
		first, size := utf8.DecodeRuneInString(word)
		if i == 0 {
			first = unicode.ToLower(first)
		} else {
			first = unicode.ToUpper(first)
		}
		words[i] = string(first) + word[size:]
	}
	return strings.Join(words, "")
}

// uniqueName appends a number to a name that is taken.
func uniqueName(name string, taken map[string]bool) string {
	candidate := name
	for n := 2; taken[candidate]; n++ {
		candidate = fmt.Sprintf("%s%d", name, n)
	}
	taken[candidate] = true
	return candidate
}
