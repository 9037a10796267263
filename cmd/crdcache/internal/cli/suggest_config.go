package cli

import (
	"cmp"
	"fmt"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

const suggestedName = "suggested"

type suggestedResource struct {
	Name  string `yaml:"name"`
	Match struct {
		Group    string `yaml:"group"`
		Version  string `yaml:"version"`
		Resource string `yaml:"resource"`
	} `yaml:"match,flow"`
	Keep       map[string][]string  `yaml:"keep,omitempty"`
	Indexes    []suggestedIndex     `yaml:"indexes,omitempty"`
	References []suggestedReference `yaml:"references,omitempty"`
}

type suggestedIndex struct {
	Name       string         `yaml:"name"`
	Path       string         `yaml:"path,omitempty"`
	Label      string         `yaml:"label,omitempty"`
	Annotation string         `yaml:"annotation,omitempty"`
	Each       string         `yaml:"each,omitempty"`
	Key        []suggestedKey `yaml:"key,omitempty,flow"`
	Type       string         `yaml:"type,omitempty"`
	Order      string         `yaml:"order,omitempty"`
	// preferredName replaces the name derived from the path.
	preferredName string
}

type suggestedKey struct {
	Name string `yaml:"name"`
	Path string `yaml:"path"`
}

var sortedIndexTypes = map[string]string{"integer": "Int", "number": "Number", "date": "Time"}

// renderConfig returns a config for types, and warnings about omitted indexes and references. targets are the
// possible targets of references. With keep, the config keeps only the fields that it reads.
func renderConfig(types []servedType, targets targetTypes,
	keep bool) (text []byte, warnings []string, err error) {
	var resources []suggestedResource
	usedNames := map[string]bool{}
	for _, t := range types {
		name := session.UniqueName(t.Names.Plural, usedNames)
		suggestion, resourceWarnings := suggestResource(t, name, targets)
		resources = append(resources, suggestion)
		for _, warning := range resourceWarnings {
			warnings = append(warnings, t.GroupResource().String()+": "+warning)
		}
	}
	if keep {
		if err := setKeepPaths(resources); err != nil {
			return nil, nil, err
		}
	}
	text, err = session.MarshalConfig(suggestedName, resources)
	return text, warnings, err
}

// setKeepPaths sets the keep-list of each resource to the fields that the resource reads.
func setKeepPaths(resources []suggestedResource) error {
	for i := range resources {
		resources[i].Keep = map[string][]string{"paths": {}}
	}
	text, err := session.MarshalConfig(suggestedName, resources)
	if err != nil {
		return err
	}
	parsed, err := indexers.Parse(indexers.Source{Data: text})
	if err != nil {
		return err
	}
	for i, r := range parsed.Resources {
		resources[i].Keep["paths"] = r.EffectiveKeep().Paths
	}
	return nil
}

// suggestResource returns the indexes and references of one type, and warnings about omissions. Each index
// has the first variant that 'crdcache validate' accepts.
func suggestResource(t servedType, name string,
	targets targetTypes) (r suggestedResource, warnings []string) {
	r = suggestedResource{Name: name}
	r.Match.Group, r.Match.Version, r.Match.Resource = t.Group, t.Version.Name, t.Names.Plural
	isSame := func(d *crd.Definition) bool { return d.GroupResource() == t.GroupResource() }
	definitions := slices.Insert(slices.DeleteFunc(slices.Clone(targets), isSame), 0, t.Definition)
	isAccepted := func(extended suggestedResource) bool {
		extended.Name, extended.Match = r.Name, r.Match
		return isValid(extended, definitions)
	}
	limit := maxIndexes - 1 // one is for owners
	names, usedKeys, isFull := map[string]bool{cache.NamespaceIndex: true, "name": true,
		"age": true}, map[string]bool{}, false
	add := func(candidate suggestedIndex) {
		if isFull {
			return
		}
		for _, variant := range candidate.variants() {
			variant.Name = "x"
			if source := variant.valueKey(); usedKeys[source] ||
				!isAccepted(suggestedResource{Indexes: []suggestedIndex{variant}}) {
				continue
			}
			if isFull = len(r.Indexes) >= limit; isFull {
				return
			}
			usedKeys[variant.valueKey()] = true
			variant.Name = variant.name(candidate.preferredName, names)
			r.Indexes = append(r.Indexes, variant)
			return
		}
	}
	candidates := proposeFromColumns(t.Version)
	if t.Schema != nil {
		candidates = append(candidates, proposeFromSchema(schemaFields(t.Version, maxFieldDepth))...)
		fields := schemaFields(t.Version, maxReferenceDepth)
		r.References, warnings = suggestReferences(proposeReferences(t, targets, fields),
			!t.Namespaced, isAccepted)
	}
	for _, candidate := range candidates {
		add(candidate)
	}
	if len(r.Indexes) == 0 {
		add(suggestedIndex{Label: "app.kubernetes.io/name", preferredName: "label-name"})
	}
	wasFull := isFull
	isFull, limit = false, maxIndexes
	add(suggestedIndex{Each: ".metadata.ownerReferences[*]", preferredName: "owner",
		Key: []suggestedKey{{"kind", ".kind"}, {"name", ".name"}}})
	if wasFull {
		warnings = append(warnings, fmt.Sprintf("the schema suggests more indexes than the %d printed ones; "+
			"add the ones that you need", maxIndexes))
	}
	return r, warnings
}

// suggestReferences returns the valid candidates with unique names, and warnings about omitted candidates.
func suggestReferences(
	candidates []suggestedReference, clusterScoped bool, isAccepted func(suggestedResource) bool,
) (out []suggestedReference, warnings []string) {
	names := map[string]bool{references.Owners: true}
	for _, candidate := range candidates {
		path := candidate.Name
		candidate.Name = "x"
		acceptsReference := func(r suggestedReference) bool {
			return isAccepted(suggestedResource{References: []suggestedReference{r}})
		}
		if !acceptsReference(candidate) {
			withNamespace := candidate
			withNamespace.To.NamespacePath = "$.metadata.name"
			if clusterScoped && candidate.To.NamespacePath == "" && acceptsReference(withNamespace) {
				warnings = append(warnings, fmt.Sprintf("no reference for %s, because the schema does not define the "+
					"namespace of the %s; add one with namespace: NAME", path, *candidate.To.Kind))
			}
			continue
		}
		if len(out) >= maxReferences {
			warnings = append(warnings, fmt.Sprintf("the schema suggests more references than the %d printed ones; "+
				"add the ones that you need", maxReferences))
			break
		}
		base, _ := referenceName(lastKey(jsonpath.MustCompile(path)))
		candidate.Name = session.UniqueName(cmp.Or(strings.TrimSuffix(base, "Name"), base), names)
		out = append(out, candidate)
	}
	return out, warnings
}

// isValid reports whether 'crdcache validate' accepts a resource. Warnings about open schemas do not count.
func isValid(r suggestedResource, definitions []*crd.Definition) bool {
	text, err := session.MarshalConfig(suggestedName, []suggestedResource{r})
	if err != nil {
		return false
	}
	config, err := indexers.CheckSources(indexers.CheckOptions{Definitions: func([]string) ([]*crd.Definition,
		error) {
		return definitions, nil
	}}, indexers.Source{Data: text})
	return err == nil && !slices.ContainsFunc(config.Warnings, func(w indexers.Diagnostic) bool {
		// an open field, a version without schema, an unknown target
		return !slices.Contains([]indexers.Code{"W301", "W302", "W311"}, w.Code)
	})
}

// proposeFromColumns returns indexes of selectable fields and printer columns, sorted for numbers and times.
// It omits names and ages, which are unique.
func proposeFromColumns(version crd.Version) []suggestedIndex {
	types := map[string]string{} // by path: a selectable field can also be a column
	for _, column := range version.Columns {
		if path, err := jsonpath.Compile(column.JSONPath); err == nil {
			types[path.String()] = sortedIndexTypes[column.Type]
		}
	}
	var proposed []suggestedIndex
	add := func(name, expr string) {
		path, err := jsonpath.Compile(expr)
		if err != nil || slices.Contains(uniquePaths, path.String()) {
			return
		}
		proposal := suggestedIndex{preferredName: camelCase(name), Type: types[path.String()]}
		proposal.setPath(path)
		if isFreeText(proposal.preferredName) || isFreeText(lastKey(path)) {
			return
		}
		if proposal.Type != "" {
			proposal.Order = "Sorted"
		}
		proposed = append(proposed, proposal)
	}
	for _, field := range version.SelectableFields {
		add("", field)
	}
	for _, column := range version.Columns {
		add(column.Name, column.JSONPath)
	}
	return proposed
}

// variants returns an index with and without its type, as quantity, and over list elements.
func (i suggestedIndex) variants() []suggestedIndex {
	variants := []suggestedIndex{i}
	if i.Type != "" {
		untyped := i
		untyped.Type, untyped.Order = "", ""
		variants = append(variants, untyped)
	}
	if i.Path != "" {
		quantity := i
		quantity.Type, quantity.Order = "Quantity", "Sorted"
		variants = append(variants, quantity)
		for _, f := range slices.Clone(variants) {
			f.Path += "[*]"
			variants = append(variants, f)
		}
	}
	return variants
}

func (i suggestedIndex) valueKey() string {
	path := i.Path
	if p, err := jsonpath.Compile(path); path != "" && err == nil {
		path = p.String()
	}
	return strings.Join([]string{path, i.Label, i.Annotation, i.Each}, "\x00")
}

// name returns a unique name: the preferred one, or one derived from the path.
func (i suggestedIndex) name(preferred string, usedNames map[string]bool) string {
	if preferred != "" && !usedNames[preferred] {
		return session.UniqueName(preferred, usedNames)
	}
	path := i.Path + i.Each
	if path == "" {
		return session.UniqueName(cmp.Or(preferred, camelCase(i.Label+i.Annotation), "value"), usedNames)
	}
	compiled := jsonpath.MustCompile(path)
	keys, keyName := pathKeys(compiled), lastKey(compiled)
	if n := len(keys); usedNames[keyName] && n > 1 {
		keyName = cmp.Or(camelCase(keys[n-2]+" "+keys[n-1]), keyName)
	}
	return session.UniqueName(keyName, usedNames)
}

// setPath sets Path, or Label or Annotation if the path selects one of them.
func (i *suggestedIndex) setPath(path *jsonpath.Path) {
	keys := pathKeys(path)
	switch {
	case len(keys) == 3 && path.Singular() && keys[0] == "metadata" && keys[1] == "labels":
		i.Label = keys[2]
	case len(keys) == 3 && path.Singular() && keys[0] == "metadata" && keys[1] == "annotations":
		i.Annotation = keys[2]
	default:
		i.Path = path.Expr()
	}
}

var uniquePaths = []string{".metadata.name", ".metadata.namespace", ".metadata.uid", ".metadata.creationTimestamp"}

// genericKeys are keys that say nothing without the key before them.
var genericKeys = []string{"name", "kind", "group", "type", "key", "value", "id", "namespace",
	"enabled", "status"}

// lastKey returns a name from the last key of a path. A generic key is combined with the key before it:
// .spec.issuerRef.name becomes issuerRefName.
func lastKey(path *jsonpath.Path) string {
	keys := pathKeys(path)
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

func pathKeys(path *jsonpath.Path) []string {
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

// camelCase converts a title to a name: "Ready Since" becomes readySince, "TLS" tls. It returns "" if the
// title has letters outside ASCII.
func camelCase(title string) string {
	if strings.ContainsFunc(title, func(r rune) bool { return r >= utf8.RuneSelf && unicode.IsLetter(r) }) {
		return ""
	}
	words := strings.FieldsFunc(title, func(r rune) bool {
		return r >= utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.IsDigit(r)
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
