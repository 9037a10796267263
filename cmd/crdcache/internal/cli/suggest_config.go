package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/jsonpath"
	"github.com/crdcache/crdcache/indexers/references"
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
	Indexes    []suggestedIndex     `yaml:"indexes,omitempty"`
	References []suggestedReference `yaml:"references,omitempty"`
}

type suggestedIndex struct {
	Name       string         `yaml:"name"`
	Path       string         `yaml:"path,omitempty"`
	Label      string         `yaml:"label,omitempty"`
	Annotation string         `yaml:"annotation,omitempty"`
	Owner      string         `yaml:"owner,omitempty"`
	Each       string         `yaml:"each,omitempty"`
	Key        []suggestedKey `yaml:"key,omitempty,flow"`
	Type       string         `yaml:"type,omitempty"`
	Order      string         `yaml:"order,omitempty"`

	// named is what the index may be called, rather than after its path.
	named string
}

type suggestedKey struct {
	Name string `yaml:"name"`
	Path string `yaml:"path"`
}

// sortedTypes are the types of indexes for columns of whose values one asks for ranges.
var sortedTypes = map[string]string{"integer": "int", "number": "number", "date": "time"}

// renderConfig returns a config for types, and warnings about what it lacks. known are the types that
// references may lead to.
func renderConfig(types []servedType, known knownTypes) (text []byte, warnings []string, err error) {
	var all []suggestedResource
	taken := map[string]bool{}
	for _, t := range types {
		one, doubts := suggestResource(t, uniqueName(t.Names.Plural, taken), known)
		all = append(all, one)
		for _, doubt := range doubts {
			warnings = append(warnings, t.GroupResource().String()+": "+doubt)
		}
	}
	text, err = marshalConfig(all...)
	return text, warnings, err
}

func marshalConfig(resources ...suggestedResource) ([]byte, error) {
	c := suggestedConfig{APIVersion: indexers.APIVersion, Kind: indexers.Kind,
		Metadata: map[string]string{"name": "suggested"}}
	c.Spec.Resources = resources
	text, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("writing the config: %w", err)
	}
	return text, nil
}

// suggestResource returns the indexes and references of one type, each in the first form that validate
// accepts, and warnings about those that are left out.
func suggestResource(t servedType, name string, known knownTypes) (r suggestedResource, warnings []string) {
	r = suggestedResource{Name: name}
	r.Match.Group, r.Match.Version, r.Match.Resource = t.Group, t.Version.Name, t.Names.Plural
	definitions := append([]*crd.Definition{t.Definition}, known.definitions(t.GroupResource())...)
	fits := func(with suggestedResource) bool {
		with.Name, with.Match = r.Name, r.Match
		return stands(with, definitions)
	}
	names, seen, more := map[string]bool{cache.NamespaceIndex: true, "name": true,
		"age": true}, map[string]bool{}, false
	add := func(candidate suggestedIndex) {
		if more {
			return
		}
		for _, form := range candidate.forms() {
			form.Name = "x"
			if source := form.source(); seen[source] ||
				!fits(suggestedResource{Indexes: []suggestedIndex{form}}) {
				continue
			}
			if more = len(r.Indexes) >= mostSuggestion; more {
				return
			}
			seen[form.source()] = true
			form.Name = form.name(candidate.named, names)
			r.Indexes = append(r.Indexes, form)
			return
		}
	}
	for _, candidate := range proposeFromColumns(t.Version) {
		add(candidate)
	}
	if t.Schema != nil {
		fields := schemaFields(t.Version)
		for _, candidate := range proposeFromSchema(fields) {
			add(candidate)
		}
		r.References, warnings = suggestReferences(proposeReferences(t.Group, known, fields),
			!t.Namespaced, fits)
	}
	if len(r.Indexes) == 0 {
		add(suggestedIndex{Label: "app.kubernetes.io/name", named: "label-name"})
	}
	add(suggestedIndex{Owner: "any", named: "owner"})
	if more {
		warnings = append(warnings,
			fmt.
				Sprintf(
					"the schema suggests more indexes than the %d that are printed; add those that you need",
					mostSuggestion))
	}
	return r, warnings
}

// suggestReferences returns the references that fit, with unique names, and warnings about the others.
func suggestReferences(
	candidates []suggestedReference, clusterScoped bool, fits func(suggestedResource) bool,
) (out []suggestedReference, warnings []string) {
	names := map[string]bool{references.Owners: true}
	for _, candidate := range candidates {
		path := candidate.Name
		candidate.Name = "x"
		with := func(r suggestedReference) bool {
			return fits(
				suggestedResource{References: []suggestedReference{r}})
		}
		if !with(candidate) {
			placed := candidate
			placed.To.Namespace = "$.metadata.name"
			if clusterScoped && candidate.To.Namespace == "" && with(placed) {
				warnings = append(warnings,
					fmt.Sprintf(
						"no reference for %s, because the schema does not say the namespace of the %v; "+
							"add one with namespace: {value: NAME}", path, candidate.To.Kind))
			}
			continue
		}
		if len(out) >= mostSuggestion {
			warnings = append(warnings,
				fmt.
					Sprintf(
						"the schema suggests more references than the %d that are printed; add those that you need", mostSuggestion))
			break
		}
		base, _ := referenceName(lastKey(jsonpath.MustCompile(path)))
		if base == "" {
			base = lastKey(jsonpath.MustCompile(path))
		}
		candidate.Name = uniqueName(base, names)
		out = append(out, candidate)
	}
	return out, warnings
}

// stands reports whether validate has no objection to a resource but that the schema leaves fields open.
func stands(r suggestedResource, definitions []*crd.Definition) bool {
	text, err := marshalConfig(r)
	if err != nil {
		return false
	}
	config, err := indexers.CheckSources(indexers.CheckOptions{Definitions: func([]string) ([]*crd.Definition,
		error) {
		return definitions, nil
	}}, indexers.Source{Data: text})
	return err == nil && !slices.ContainsFunc(config.Warnings, func(w indexers.Diagnostic) bool {
		return !slices.Contains([]indexers.Code{indexers.CodeOpenField, indexers.CodeNoSchema,
			indexers.CodeNoTarget}, w.Code)
	})
}

// proposeFromColumns gives an index for each field that a version makes selectable or shows in a column:
// sorted ones for numbers and times. Columns of names and ages are left out: every object has another.
func proposeFromColumns(version crd.Version) []suggestedIndex {
	types := map[string]string{} // by path: a selectable field may be a column too
	for _, column := range version.Columns {
		if path, err := jsonpath.Compile(column.JSONPath); err == nil {
			types[path.String()] = sortedTypes[column.Type]
		}
	}
	var all []suggestedIndex
	add := func(name, expr string) {
		path, err := jsonpath.Compile(expr)
		if err != nil || uselessPath(path.String()) {
			return
		}
		one := suggestedIndex{named: camelCase(name), Type: types[path.String()]}
		one.read(path)
		if freeText(one.named) || freeText(lastKey(path)) {
			return
		}
		if one.Type != "" {
			one.Order = "sorted"
		}
		all = append(all, one)
	}
	for _, field := range version.SelectableFields {
		add("", field)
	}
	for _, column := range version.Columns {
		add(column.Name, column.JSONPath)
	}
	return all
}

// forms are what an index may be meant as: with its type and without, of quantities, and over the elements of
// a list.
func (i suggestedIndex) forms() []suggestedIndex {
	forms := []suggestedIndex{i}
	elements := func(f suggestedIndex) suggestedIndex {
		f.Path += "[*]"
		return f
	}
	if i.Type != "" {
		plain := i
		plain.Type, plain.Order = "", ""
		forms = append(forms, plain)
	}
	if i.Path != "" {
		quantity := i
		quantity.Type, quantity.Order = "quantity", "sorted"
		forms = append(forms, quantity)
		for _, f := range slices.Clone(forms) {
			forms = append(forms, elements(f))
		}
	}
	return forms
}

// source tells what an index is over.
func (i suggestedIndex) source() string {
	path := i.Path
	if p, err := jsonpath.Compile(path); path != "" && err == nil {
		path = p.String()
	}
	return strings.Join([]string{path, i.Label, i.Annotation, i.Owner, i.Each}, "\x00")
}

// name gives a name that is not taken: that of a column, or one made of the path.
func (i suggestedIndex) name(named string, taken map[string]bool) string {
	if named != "" && !taken[named] {
		return uniqueName(named, taken)
	}
	path := i.Path + i.Each
	if path == "" {
		return uniqueName(cmp.Or(named, camelCase(i.Label+i.Annotation), "value"), taken)
	}
	keys := keysOf(jsonpath.MustCompile(path))
	short := lastKey(jsonpath.MustCompile(path))
	if n := len(keys); taken[short] && n > 1 {
		short = cmp.Or(camelCase(keys[n-2]+" "+keys[n-1]), short)
	}
	return uniqueName(short, taken)
}

// read has the index take its values from a path, by the name alone where it leads to a label or an
// annotation, which has no other reading.
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
	return slices.Contains([]string{".metadata.name", ".metadata.namespace", ".metadata.uid",
		".metadata.creationTimestamp"}, path)
}

// genericKeys are keys that say little by themselves.
var genericKeys = []string{"name", "kind", "group", "type", "key", "value", "id", "namespace",
	"enabled", "status"}

// lastKey names an index after the last key of its path, with the key before it where that one says little:
// .spec.issuerRef.name becomes issuerRefName.
func lastKey(path *jsonpath.Path) string {
	keys := keysOf(path)
	name := ""
	switch n := len(keys); {
	case n == 0:
	case n > 2 && slices.Contains(genericKeys, keys[n-1]):
		name = camelCase(keys[n-2] + " " + keys[n-1])
	default:
		name = camelCase(keys[n-1])
	}
	return cmp.Or(name, "value")
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

// camelCase makes a name of the words of a title: "Ready Since" becomes readySince, "TLS" tls. Names are
// ASCII; a title with other letters gives none.
func camelCase(title string) string {
	if strings.ContainsFunc(title, func(r rune) bool { return r >= utf8.RuneSelf && unicode.IsLetter(r) }) {
		return ""
	}
	words := strings.FieldsFunc(title, func(r rune) bool {
		return r >= utf8.RuneSelf ||
			!unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	for i, word := range words {
		if strings.ToUpper(word) == word {
			word = strings.ToLower(word)
		}
		if i == 0 {
			words[i] = strings.ToLower(word[:1]) + word[1:]
		} else {
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
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
